// A table of plain text, as the commands print it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tactus {

// Cells under two lines of header, what and in which unit. The first column is text, aligned left,
// the others are numbers, aligned right. Lines stay within 120 columns at the cost of the names:
// one that is cut ends in a number, and lines below the table give the numbers' names in full.
class TextTable {
 public:
  void AddColumn(std::string what, std::string unit);
  // "model|rate [r/s]|busy [%]": what, and in brackets in which unit.
  void AddColumns(std::string_view columns);
  // One cell for each column, or fewer: the rest stays empty.
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  std::string Print() const;

 private:
  std::vector<std::vector<std::string>> rows_{2};
};

}  // namespace tactus
