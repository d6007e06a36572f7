// Other processes of this machine: started so that they outlive whoever started them, and found
// again by what tells one process from a later one of the same number.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/expected.h"

namespace tactus {

struct ProcessIdentity {
  int pid = 0;
  std::uint64_t started = 0;  // clock ticks after the machine's start

  bool operator==(const ProcessIdentity&) const = default;
};

// Starts `command` in a session of its own, its output appended to `log`. It does not end with the
// caller. kUnavailable with the system's reason.
Expected<ProcessIdentity> StartProcess(const std::vector<std::string>& command,
                                       const std::filesystem::path& log);
// Whether it still runs; a child that has ended is taken off the system's list.
bool Runs(const ProcessIdentity& process);
// True when it has ended within `time`. At once, by a descriptor of the process, where the kernel
// has them.
bool EndsWithin(const ProcessIdentity& process, std::chrono::milliseconds time);
void AskToStop(const ProcessIdentity& process);  // SIGTERM
// SIGTERM, and SIGKILL for one that has not ended after `grace`.
void StopProcess(const ProcessIdentity& process, std::chrono::milliseconds grace);
// One that no other call gives, on any machine; not 0.
std::uint64_t UniqueNumber();
// Raises this process's limit of file descriptors to what the system allows it; what it is then.
std::size_t RaiseDescriptorLimit();
// The path of this program's file.
std::filesystem::path ThisProgram();

// A file that one process at a time holds.
class FolderLock {
 public:
  // Makes the folder. kAlreadyExists where another process holds it.
  static Expected<FolderLock> Take(const std::filesystem::path& folder);
  FolderLock(FolderLock&& other) noexcept : file_(other.file_) { other.file_ = -1; }
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

 private:
  explicit FolderLock(int file) : file_(file) {}
  int file_;
};

}  // namespace tactus
