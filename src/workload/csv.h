// Small comma-separated tables with a header line; lines that start with '#' are comments.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"

namespace tactus {

struct CsvTable {
  std::string where;    // the file, for messages
  std::string comment;  // the first comment line, without its '#'
  std::vector<std::string> header;
  struct Row {
    int line = 0;
    std::vector<std::string> cells;  // as many as the header has
  };
  std::vector<Row> rows;

  std::optional<std::size_t> Column(std::string_view name) const;
};

Expected<CsvTable> ReadCsv(const std::filesystem::path& path);
// The same of a file's text; `where` is what messages call it.
Expected<CsvTable> ParseCsv(std::string_view text, std::string where);

// A finite number that fills the whole text (spaces around it aside).
std::optional<double> ParseNumber(std::string_view text);

std::string_view Trim(std::string_view text);
std::vector<std::string> SplitTrimmed(std::string_view text, char separator);

}  // namespace tactus
