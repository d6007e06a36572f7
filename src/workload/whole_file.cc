#include "workload/whole_file.h"

#include <fstream>

#include <fmt/format.h>

namespace tactus {

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
  return Fail(
      ErrorCode::kUnavailable,
      fmt::format("{}: cannot write {}; is the folder there, and writable?", path.string(), what));
}

}  // namespace tactus
