#include "base/whole_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/why_not_written.h"

namespace tactus {
namespace {

std::string Said(const std::filesystem::path& path, std::string_view says,
                 std::string_view what = "", std::string_view after = "") {
  std::string text = path.string() + ": ";
  return text.append(says).append(what).append(after);
}

std::unexpected<Error> Unreadable(const std::filesystem::path& path, std::string_view what,
                                  int cause, std::string_view remedy) {
  return NotFound(Said(path, "cannot read this ", what, " (")
                      .append(std::strerror(cause))
                      .append(")")
                      .append(remedy));
}

bool WasGivenOpen(const std::filesystem::path& path) {
  const std::string& name = path.native();
  return name == "/dev/stdin" || name.starts_with("/dev/fd/") || name.starts_with("/proc/self/fd/");
}

// A file to read. To open a pipe that nobody writes would wait for ever, hence O_NONBLOCK.
class Opened {
 public:
  explicit Opened(const std::filesystem::path& path)
      : descriptor_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    cause_ = descriptor_ < 0 || fstat(descriptor_, &state_) != 0 ? errno : 0;
  }
  ~Opened() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  int cause() const { return cause_; }  // an errno; 0: it is open
  bool folder() const { return S_ISDIR(state_.st_mode); }
  bool regular() const { return S_ISREG(state_.st_mode); }
  std::size_t size() const { return static_cast<std::size_t>(state_.st_size); }

  // Reads on to the end, but no more than one byte beyond `most`. False: cause() says why.
  bool ReadTo(std::string& text, std::size_t most) {
    constexpr std::size_t kAtOnce = 1 << 16;
    if (!regular()) fcntl(descriptor_, F_SETFL, 0);  // a pipe that was given open: its writer
    try {
      text.reserve(std::min(size(), most) + 1);
      for (;;) {
        const std::size_t had = text.size();
        const std::size_t room = text.capacity() - had;
        const std::size_t more = std::min(room > 0 ? room : kAtOnce, most + 1 - had);
        text.resize(had + more);
        const ssize_t got = read(descriptor_, text.data() + had, more);
        text.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (got < 0 && errno != EINTR) cause_ = errno;
        if (got == 0 || cause_ != 0 || text.size() > most) return cause_ == 0;
      }
    } catch (const std::exception&) {  // no memory for it, or more than any text can have
      cause_ = ENOMEM;
      return false;
    }
  }

 private:
  const int descriptor_;
  struct stat state_ {};
  int cause_ = 0;
};

constexpr std::string_view kNoFile = "is no regular file but a pipe, a socket or a device";
constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max() / 2;

// Into a file that is made for it: whatever lay there, a pipe that would be waited for too, goes.
// 0, or why it failed.
int WriteFresh(std::string_view text, const std::filesystem::path& path, unsigned mode) {
  unlink(path.c_str());
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (file < 0) return errno;
  int failed = 0;
  while (!text.empty() && failed == 0) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      failed = errno;
    }
  }
  if (close(file) != 0 && failed == 0) failed = errno;
  return failed;
}

}  // namespace

Expected<std::string> ReadRegular(const std::filesystem::path& path, std::size_t most) {
  Opened file(path);
  if (file.cause() == 0 && !file.regular()) {
    return InvalidArgument(Said(path, file.folder() ? "is a directory, not a file" : kNoFile));
  }
  std::string text;
  if (file.cause() != 0 || !file.ReadTo(text, most)) {
    return NotFound(Said(path, "cannot be read (", std::strerror(file.cause()), ")"));
  }
  if (text.size() <= most) return text;
  return InvalidArgument(
      Said(path, "larger than ", std::to_string(most), " bytes: the wrong file?"));
}

Expected<std::string> ReadWhole(const std::filesystem::path& path, std::string_view what,
                                std::string_view remedy) {
  Opened file(path);
  if (file.cause() != 0) return Unreadable(path, what, file.cause(), remedy);
  if (file.folder()) {
    return InvalidArgument(Said(path, "is a directory, not a ", what, remedy));
  }
  if (!file.regular() && !WasGivenOpen(path)) {
    return InvalidArgument(Said(path, kNoFile, ", not a ", what).append(remedy));
  }
  std::string text;
  if (!file.ReadTo(text, kAny)) return Unreadable(path, what, file.cause(), remedy);
  if (text.empty()) {
    return InvalidArgument(Said(path, "this ", what, " is empty").append(remedy));
  }
  return text;
}

Status WriteWhole(std::string_view text, const std::filesystem::path& named, std::string_view what,
                  unsigned mode) {
  std::error_code code;
  const std::filesystem::file_status there = std::filesystem::status(named, code);
  // What lies there is to stay what it is: a device a device, a link a link.
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) {
    return InvalidArgument(Said(named, "is no regular file: name another for this ", what));
  }
  const bool link = std::filesystem::is_symlink(named, code);
  const std::filesystem::path path =
      link ? named.parent_path() / std::filesystem::read_symlink(named, code) : named;
  std::filesystem::path aside = path;
  aside += ".new";
  const int failed = WriteFresh(text, aside, mode);
  if (failed == 0) std::filesystem::rename(aside, path, code);
  if (failed == 0 && !code) return {};
  std::filesystem::remove(aside, code);
  const bool no_room = failed == EFBIG || failed == ENOSPC || failed == EDQUOT;
  return Fail(ErrorCode::kUnavailable,
              Said(path, "cannot write this ", what,
                   no_room ? ": " + WhyNotWritten(failed)
                           : std::string("; is the folder there, and writable?")));
}

}  // namespace tactus
