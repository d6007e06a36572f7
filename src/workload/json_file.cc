#include "workload/json_file.h"

#include <fstream>

#include <fmt/format.h>

#include "workload/json_reader.h"

namespace tactus {

Expected<nlohmann::json> ParseJson(std::string_view text, std::string_view where,
                                   std::string_view remedy) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const std::size_t byte = error.byte > 0 ? error.byte - 1 : 0;
    return InvalidArgument(
        fmt::format("{}:{}: not valid JSON{}", where, LineColumn(text, byte), remedy));
  } catch (const nlohmann::json::out_of_range&) {
    // The library knows no place for this one.
    return InvalidArgument(fmt::format("{}: a number is too large{}", where, remedy));
  }
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
  return Fail(
      ErrorCode::kUnavailable,
      fmt::format("{}: cannot write {}; is the folder there, and writable?", path.string(), what));
}

}  // namespace tactus
