#include "metrics/text_table.h"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>

namespace tactus {
namespace {

constexpr std::size_t kShortestName = 12;
constexpr std::size_t kHeader = 2;  // rows

std::size_t width = 120;
bool spares = false;  // whether somebody has set it

}  // namespace

void TextTable::SetWidth(std::size_t columns) {
  width = columns;
  spares = true;
}

void TextTable::AddColumn(std::string what, std::string unit, int spare) {
  rows_[0].push_back(std::move(what));
  rows_[1].push_back(std::move(unit));
  spare_.push_back(spare);
}

void TextTable::AddColumns(std::string_view columns) {
  for (const auto part : std::views::split(columns, '|')) {
    std::string_view column(part.begin(), part.end());
    int spare = 0;
    const std::size_t mark = column.rfind('~');
    if (mark != column.npos && mark + 2 == column.size()) {
      spare = column.back() - '0';
      column = column.substr(0, mark);
    }
    const std::size_t unit = column.ends_with(']') ? column.find(" [") : column.npos;
    AddColumn(
        std::string(column.substr(0, unit)),
        unit == column.npos ? "" : std::string(column.substr(unit + 2, column.size() - unit - 3)),
        spare);
  }
}

std::vector<std::size_t> TextTable::Widths() const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  return widths;
}

std::pair<std::vector<std::size_t>, std::string> TextTable::Shown(
    const std::vector<std::size_t>& widths) const {
  const auto says = [this](std::size_t column) {
    const auto has = [column](const std::vector<std::string>& row) {
      return column < row.size() && !row[column].empty() && row[column] != "-";
    };
    return column == 0 || rows_.size() == kHeader ||
           std::any_of(rows_.begin() + kHeader, rows_.end(), has);
  };
  std::vector<std::size_t> shown;
  std::size_t total = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (!says(i)) continue;
    shown.push_back(i);
    total += widths[i] + (i > 0 ? 2 : 0);
  }
  std::string spared;
  // Names give what they can.
  const std::size_t names = widths[0] - std::min(widths[0], kShortestName);
  while (spares && total > width + names) {
    const auto least =
        std::ranges::max_element(shown, {}, [this](std::size_t column) { return spare_[column]; });
    if (spare_[*least] == 0) break;
    total -= widths[*least] + 2;
    spared += (spared.empty() ? "" : ", ") + rows_[0][*least];
    shown.erase(least);
  }
  return {std::move(shown), std::move(spared)};
}

std::string TextTable::Print() const {
  std::vector<std::size_t> widths = Widths();
  const auto [shown, spared] = Shown(widths);
  // What still does not fit is taken from the names.
  std::size_t total = 2 * (shown.size() - 1);
  for (const std::size_t column : shown) total += widths[column];
  if (total > width && widths[0] > kShortestName) {
    widths[0] -= std::min(widths[0] - kShortestName, total - width);
  }
  std::string text;
  std::vector<std::string> cut;  // each once: rows of the same name share its number
  for (const auto& row : rows_) {
    std::string line;
    for (const std::size_t column : shown) {
      const std::string cell = column < row.size() ? row[column] : "";
      if (column > 0) {
        line += fmt::format("  {:>{}}", cell, widths[column]);
        continue;
      }
      std::string name = cell;
      if (name.size() > widths[0]) {
        const auto known = std::find(cut.begin(), cut.end(), name);
        const std::string mark = fmt::format("..[{}]", known - cut.begin() + 1);
        if (known == cut.end()) cut.push_back(name);
        name = name.substr(0, widths[0] - mark.size()) + mark;
      }
      line = fmt::format("{:<{}}", name, widths[0]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  for (std::size_t i = 0; i < cut.size(); ++i) {
    cut[i].erase(0, cut[i].find_first_not_of(' '));
    text += fmt::format("[{}] {}\n", i + 1, cut[i]);
  }
  if (!spared.empty()) {
    text += fmt::format("not shown, for want of width: {} (a wider terminal has it, and --json)\n",
                        spared);
  }
  return text;
}

}  // namespace tactus
