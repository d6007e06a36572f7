// Leadership of the only controller there is: whoever holds the lock of its store's file. The
// system takes the lock back when its process ends, however it ends.
#pragma once

#include <string>

#include "knowledge/coordination.h"

namespace tactus::knowledge {

class FileLock : public Coordination {
 public:
  FileLock(const std::string& store_path, const LeaseOptions& options);
  ~FileLock() override;

  const std::string& place() const override { return path_; }
  Expected<std::uint64_t> Acquire(TimePoint now, std::uint64_t above) override;
  // kCancelled where somebody has removed the file that is locked.
  Status Renew(TimePoint now) override;
  void Resign() override;

 private:
  std::unexpected<Error> Fault(const std::string& what);

  std::string path_;  // PATH.lock
  std::string name_;
  int file_ = -1;
};

}  // namespace tactus::knowledge
