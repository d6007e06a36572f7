#include "workload/json_reader.h"

#include <fmt/format.h>

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

}  // namespace tactus
