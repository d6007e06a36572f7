// Leadership by an advisory lock of PostgreSQL, held by a session of its own. The server ends the
// session, and with it the lock, when its controller is gone or silent for longer than the lease.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "knowledge/coordination.h"

namespace tactus::knowledge {

class AdvisoryLock : public Coordination {
 public:
  AdvisoryLock(std::string_view uri, const LeaseOptions& options);
  ~AdvisoryLock() override;

  const std::string& place() const override { return place_; }
  Expected<std::uint64_t> Acquire(TimePoint now, std::uint64_t above) override;
  Status Renew(TimePoint now) override;
  void Resign() override;

 private:
  struct Session;
  // The term; 0: another holds the lock.
  std::uint64_t TryLock(std::uint64_t above);
  std::string Holder();

  std::string uri_, place_;
  LeaseOptions options_;
  std::unique_ptr<Session> session_;
};

}  // namespace tactus::knowledge
