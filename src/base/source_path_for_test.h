// Where this source tree lies, for tests and benchmarks that read its files.
#pragma once

#include <string>

namespace tactus {

// Absolute. Defined in a file that the build writes (cmake/TactusModule.cmake), so that the path is
// in no other compilation and the compiler cache serves every checkout.
extern const char* const kSourceDir;

// The file or folder BELOW the source tree, as in "scenarios/three-resnets.toml".
inline std::string SourcePath(const std::string& below) {
  return std::string(kSourceDir) + "/" + below;
}

}  // namespace tactus
