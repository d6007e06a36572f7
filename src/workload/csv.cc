#include "workload/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/whole_file.h"

namespace tactus {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string> SplitTrimmed(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(Trim(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<double> ParseNumber(std::string_view text) {
  text = Trim(text);
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

std::optional<std::size_t> CsvTable::Column(std::string_view name) const {
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (header[i] == name) return i;
  }
  return {};
}

Expected<CsvTable> ReadCsv(const std::filesystem::path& path) {
  const auto text = ReadWhole(path, "file");
  if (!text) return std::unexpected(text.error());
  return ParseCsv(*text, path.string());
}

Expected<CsvTable> ParseCsv(std::string_view text, std::string where) {
  CsvTable table;
  table.where = std::move(where);
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (line.front() == '#') {
      if (table.comment.empty()) table.comment = Trim(line.substr(1));
      continue;
    }
    std::vector<std::string> cells = SplitTrimmed(line, ',');
    if (table.header.empty()) {
      table.header = std::move(cells);
      continue;
    }
    if (cells.size() != table.header.size()) {
      return InvalidArgument(fmt::format("{}:{}: {} cells where the header has {}", table.where,
                                         number, cells.size(), table.header.size()));
    }
    table.rows.push_back({number, std::move(cells)});
  }
  if (table.header.empty()) return InvalidArgument(fmt::format("{}: has no header", table.where));
  return table;
}

}  // namespace tactus
