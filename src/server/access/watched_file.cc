#include "server/access/watched_file.h"

#include <sys/stat.h>

#include "base/whole_file.h"

namespace tactus {
namespace {

std::int64_t Nanoseconds(const timespec& t) { return t.tv_sec * 1'000'000'000 + t.tv_nsec; }

}  // namespace

FileState StateOf(const std::filesystem::path& path) {
  struct stat s {};
  if (path.empty() || stat(path.c_str(), &s) != 0) return {};
  return {Nanoseconds(s.st_mtim), Nanoseconds(s.st_ctim), s.st_ino,
          static_cast<std::uint64_t>(s.st_size)};
}

Expected<std::string> ReadSmallFile(const std::filesystem::path& path) {
  auto text = ReadRegular(path, 1 << 20);
  if (!text && text.error().code == ErrorCode::kNotFound) {
    return InvalidArgument(text.error().message +
                           "; name a file that is there and that this user may read");
  }
  return text;
}

}  // namespace tactus
