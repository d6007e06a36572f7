// A CSV file of results that a killed command takes up again: what is in it is not run twice. Its
// first line says what the results depend on; a file with another first line begins anew.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/expected.h"

namespace tactus {

class ResultFile {
 public:
  // `origin` is one line; `header` has no commas in its names. A last line that was cut off while
  // it was written is dropped. `fresh`: begins anew in any case.
  static Expected<ResultFile> Open(const std::filesystem::path& path, const std::string& origin,
                                   const std::vector<std::string>& header, bool fresh);

  // As they were found, each with as many cells as the header.
  const std::vector<std::vector<std::string>>& found() const { return found_; }
  // The rows reach the file together, or not at all where the process dies. Cells hold no commas.
  Status Append(const std::vector<std::vector<std::string>>& rows);

 private:
  std::filesystem::path path_;
  std::vector<std::vector<std::string>> found_;
  std::ofstream out_;
};

}  // namespace tactus
