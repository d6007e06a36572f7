// Small files that operators replace while the server runs: read whole, and known by their state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/expected.h"

namespace tactus {

// Differs whenever a file was written or replaced, also by another one of the same age; all zero
// where there is none. Follows links, as those of mounted secrets.
struct FileState {
  std::int64_t modified = 0;  // ns
  std::int64_t changed = 0;   // ns, of the inode: cp -p keeps the other one
  std::uint64_t inode = 0;
  std::uint64_t size = 0;

  bool operator==(const FileState&) const = default;
};
FileState StateOf(const std::filesystem::path& path);

// InvalidArgument, with the path, where it cannot be read, is no regular file or is larger than 1
// MiB. Never waits.
Expected<std::string> ReadSmallFile(const std::filesystem::path& path);

}  // namespace tactus
