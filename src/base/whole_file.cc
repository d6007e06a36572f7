#include "base/whole_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>

namespace tactus {
namespace {

std::string Said(const std::filesystem::path& path, std::string_view says, std::string_view what,
                 std::string_view after) {
  std::string text = path.string() + ": ";
  return text.append(says).append(what).append(after);
}

// `cause` is an errno; 0: the system gave none.
std::unexpected<Error> Unreadable(const std::filesystem::path& path, std::string_view what,
                                  int cause, std::string_view remedy) {
  std::string text = Said(path, "cannot read this ", what, "");
  if (cause != 0) text += " (" + std::string(std::strerror(cause)) + ")";
  return NotFound(text.append(remedy));
}

}  // namespace

Expected<std::string> ReadWhole(const std::filesystem::path& path, std::string_view what,
                                std::string_view remedy) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return InvalidArgument(Said(path, "is a directory, not a ", what, remedy));
  }
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return Unreadable(path, what, errno, remedy);
  if (in.peek() == std::ifstream::traits_type::eof()) {
    return InvalidArgument(Said(path, "this ", what, " is empty").append(remedy));
  }
  std::ostringstream text;
  text << in.rdbuf();
  if (!text || in.bad()) return Unreadable(path, what, errno, remedy);
  return std::move(text).str();
}

Status WriteWhole(std::string_view text, const std::filesystem::path& path, std::string_view what) {
  std::filesystem::path aside = path;
  aside += ".new";
  std::ofstream file(aside, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  std::error_code code;
  if (file) std::filesystem::rename(aside, path, code);
  if (file && !code) return {};
  std::filesystem::remove(aside, code);
  return Fail(ErrorCode::kUnavailable,
              Said(path, "cannot write this ", what, "; is the folder there, and writable?"));
}

}  // namespace tactus
