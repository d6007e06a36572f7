#include "reproduction/result_file.h"

#include <sstream>

#include "base/check.h"
#include "workload/csv.h"

namespace tactus {
namespace {

std::string Line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    CHECK(cell.find_first_of(",\n") == std::string::npos, "the row could not be read again");
    line += (line.empty() ? "" : ",") + cell;
  }
  return line + "\n";
}

std::string WholeLines(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  std::string whole = text.str();
  whole.resize(whole.rfind('\n') + 1);  // npos + 1 is 0
  return whole;
}

}  // namespace

Expected<ResultFile> ResultFile::Open(const std::filesystem::path& path, const std::string& origin,
                                      const std::vector<std::string>& header, bool fresh) {
  ResultFile file;
  file.path_ = path;
  const std::string head = "# " + origin + "\n" + Line(header);
  if (const std::string text = WholeLines(path); !fresh && text.starts_with(head)) {
    std::stringstream rest(text.substr(head.size()));
    for (std::string line; std::getline(rest, line);) {
      std::vector<std::string> cells = SplitTrimmed(line, ',');
      if (cells.size() == header.size()) file.found_.push_back(std::move(cells));
    }
  }
  file.out_.open(path, std::ios::trunc | std::ios::binary);
  file.out_ << head;
  if (auto kept = file.Append(file.found_); !kept) return std::unexpected(kept.error());
  return file;
}

Status ResultFile::Append(const std::vector<std::vector<std::string>>& rows) {
  std::string text;
  for (const auto& row : rows) text += Line(row);
  out_ << text << std::flush;
  if (!out_) return InvalidArgument("cannot write " + path_.string());
  return {};
}

}  // namespace tactus
