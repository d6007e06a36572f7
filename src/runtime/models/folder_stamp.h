// What the files of a model's folder were at an instant: whoever polls compares, and loads the
// model anew where they differ.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

namespace tactus {

// What the system says of a file, or of a folder or link.
struct FileFacts {
  std::uint64_t size = 0;
  std::int64_t written = 0;  // of its contents; ns since 1970, whoever writes may set it
  std::int64_t changed = 0;  // of anything: a rename too, and nobody can set it
};
// `path` itself, and where it is a link and `follow`, what it names. Zeros where there is nothing.
using FactsOf = std::function<FileFacts(const std::filesystem::path& path, bool follow)>;
FileFacts SystemFacts(const std::filesystem::path& path, bool follow);

class FolderStamp {
 public:
  FolderStamp() = default;  // of nothing: no folder is as it says
  // The stamp of all files below the folder; links are followed. `now`: ns since 1970.
  static FolderStamp Of(const std::filesystem::path& folder, std::int64_t now,
                        const FactsOf& facts = SystemFacts);

  // Whether the folder is as it was; then this becomes its stamp of now.
  bool StillHolds(const std::filesystem::path& folder, std::int64_t now,
                  const FactsOf& facts = SystemFacts);

 private:
  std::uint64_t facts_ = 0;
  // Some network file systems count in whole seconds: what is written twice within one looks as it
  // did. Contents are compared as long as that may be so.
  bool young_ = false;
  std::uint64_t contents_ = 0;  // of the files; where young_
};

}  // namespace tactus
