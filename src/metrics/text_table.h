// A table of plain text, as the commands print it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tactus {

// Cells under two lines of header, what and in which unit. The first column is text, aligned left,
// the others are numbers, aligned right. A column in which no row has anything is not shown. Lines
// stay within a width, first at the cost of columns that can be spared, which a line below names,
// then of the names: one that is cut ends in a number, and lines below the table give the numbers'
// names in full.
class TextTable {
 public:
  // Of lines of all tables: the terminal's, before the first table. Where nobody sets it, lines
  // have 120 columns and no column is spared.
  static void SetWidth(std::size_t columns);

  // `spare`: whether the column can be spared, and before those with a smaller one; 0: no.
  void AddColumn(std::string what, std::string unit, int spare = 0);
  // "model|rate [r/s]|busy [%]~2": what, in brackets in which unit, and how spare it is.
  void AddColumns(std::string_view columns);
  // One cell for each column, or fewer: the rest stays empty.
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  std::string Print() const;

 private:
  std::vector<std::size_t> Widths() const;
  // Those that are shown, and what of the others a line has no room for.
  std::pair<std::vector<std::size_t>, std::string> Shown(
      const std::vector<std::size_t>& widths) const;

  std::vector<std::vector<std::string>> rows_{2};
  std::vector<int> spare_;  // by column
};

}  // namespace tactus
