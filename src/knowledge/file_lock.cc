#include "knowledge/file_lock.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tactus::knowledge {
namespace {

// "7 ctl1 (process 4711)\n": the term, and whose it is or was.
std::string ReadHolder(int file) {
  std::array<char, 512> text{};
  const ssize_t size = ::pread(file, text.data(), text.size(), 0);
  std::string_view line(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return std::string(line.substr(0, line.find('\n')));
}

std::uint64_t TermIn(const std::string& holder) {
  std::uint64_t term = 0;
  std::from_chars(holder.data(), holder.data() + holder.size(), term);
  return term;
}

}  // namespace

FileLock::FileLock(const std::string& store_path, const LeaseOptions& options)
    : path_(store_path + ".lock"), name_(options.name) {}

FileLock::~FileLock() { Resign(); }

std::unexpected<Error> FileLock::Fault(const std::string& what) {
  const std::string why = std::strerror(errno);
  Resign();
  return Fail(ErrorCode::kUnavailable,
              fmt::format("{}: {}: {}; its folder must exist and be writable by this user", path_,
                          what, why));
}

Expected<std::uint64_t> FileLock::Acquire(TimePoint, std::uint64_t above) {
  Resign();
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) return Fault("opening it");
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Fault("locking it");
    const std::string holder = ReadHolder(file_);
    const std::size_t name = holder.find(' ') + 1, end = holder.rfind(" (process ");
    Heard(name == 0 || end < name ? "" : holder.substr(name, end - name));
    Resign();
    return Fail(ErrorCode::kUnavailable,
                fmt::format("{}: another controller leads, term {}", path_, holder));
  }
  const std::uint64_t term = std::max(TermIn(ReadHolder(file_)), above) + 1;
  const std::string holder = fmt::format("{} {} (process {})\n", term, name_, ::getpid());
  if (::ftruncate(file_, 0) != 0 ||
      ::pwrite(file_, holder.data(), holder.size(), 0) != ssize_t(holder.size()) ||
      ::fsync(file_) != 0) {
    return Fault("writing it");
  }
  Hold(term, kNever);
  return term;
}

Status FileLock::Renew(TimePoint) {
  struct stat locked {
  }, named{};
  if (IsHeld() && ::fstat(file_, &locked) == 0 && ::stat(path_.c_str(), &named) == 0 &&
      locked.st_ino == named.st_ino && locked.st_dev == named.st_dev) {
    return {};
  }
  Resign();
  return Fail(ErrorCode::kCancelled,
              path_ + ": the lock is not held any more, or its file was removed; acquire it again");
}

void FileLock::Resign() {
  Lose();
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

}  // namespace tactus::knowledge
