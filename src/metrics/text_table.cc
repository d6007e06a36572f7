#include "metrics/text_table.h"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>

namespace tactus {
namespace {

constexpr std::size_t kWidth = 120;
constexpr std::size_t kShortestName = 12;

}  // namespace

void TextTable::AddColumn(std::string what, std::string unit) {
  rows_[0].push_back(std::move(what));
  rows_[1].push_back(std::move(unit));
}

void TextTable::AddColumns(std::string_view columns) {
  for (const auto part : std::views::split(columns, '|')) {
    const std::string_view column(part.begin(), part.end());
    const std::size_t unit = column.ends_with(']') ? column.find(" [") : column.npos;
    AddColumn(
        std::string(column.substr(0, unit)),
        unit == column.npos ? "" : std::string(column.substr(unit + 2, column.size() - unit - 3)));
  }
}

std::string TextTable::Print() const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  // What does not fit is taken from the names.
  std::size_t total = 2 * (widths.size() - 1);
  for (const std::size_t width : widths) total += width;
  if (total > kWidth && widths[0] > kShortestName) {
    widths[0] -= std::min(widths[0] - kShortestName, total - kWidth);
  }
  std::string text;
  std::vector<std::string> cut;  // each once: rows of the same name share its number
  for (const auto& row : rows_) {
    std::string name = row[0];
    if (name.size() > widths[0]) {
      const auto known = std::find(cut.begin(), cut.end(), name);
      const std::string mark = fmt::format("..[{}]", known - cut.begin() + 1);
      if (known == cut.end()) cut.push_back(name);
      name = name.substr(0, widths[0] - mark.size()) + mark;
    }
    std::string line = fmt::format("{:<{}}", name, widths[0]);
    for (std::size_t i = 1; i < row.size(); ++i) {
      line += fmt::format("  {:>{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  for (std::size_t i = 0; i < cut.size(); ++i) {
    cut[i].erase(0, cut[i].find_first_not_of(' '));
    text += fmt::format("[{}] {}\n", i + 1, cut[i]);
  }
  return text;
}

}  // namespace tactus
