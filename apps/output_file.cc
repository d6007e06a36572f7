#include "output_file.h"

#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

namespace tactus {
namespace {

namespace fs = std::filesystem;

// Empty: it can.
std::string WhyNotWritable(const std::string& text) {
  const fs::path path = text;
  std::error_code unreadable;  // such a path fails the test of access below
  if (fs::is_directory(path, unreadable)) {
    return fmt::format("{}: is a folder; name a file in it", text);
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::path& touched = fs::exists(path, unreadable) ? path : folder;
  if (access(touched.c_str(), W_OK) == 0) return "";
  return fmt::format("{}: cannot write it; is the folder {} there, and writable?", text,
                     folder.string());
}

}  // namespace

CLI::Validator WritableFile() { return {WhyNotWritable, "FILE", "WritableFile"}; }

}  // namespace tactus
