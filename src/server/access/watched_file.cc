#include "server/access/watched_file.h"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>

namespace tactus {
namespace {

constexpr std::uintmax_t kLargest = 1 << 20;

std::int64_t Nanoseconds(const timespec& t) { return t.tv_sec * 1'000'000'000 + t.tv_nsec; }

}  // namespace

FileState StateOf(const std::filesystem::path& path) {
  struct stat s {};
  if (path.empty() || stat(path.c_str(), &s) != 0) return {};
  return {Nanoseconds(s.st_mtim), Nanoseconds(s.st_ctim), s.st_ino,
          static_cast<std::uint64_t>(s.st_size)};
}

Expected<std::string> ReadSmallFile(const std::filesystem::path& path) {
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(path, failed);
  std::ifstream file(path, std::ios::binary);
  if (!failed && !file) failed = {errno, std::generic_category()};
  if (failed) {
    return InvalidArgument(fmt::format(
        "{}: cannot be read ({}); name a file that is there and that this user may read",
        path.string(), failed.message()));
  }
  if (size > kLargest) {
    return InvalidArgument(fmt::format("{}: larger than 1 MiB: the wrong file?", path.string()));
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace tactus
