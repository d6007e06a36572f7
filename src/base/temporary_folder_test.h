// A folder that belongs to one test alone, whatever runs beside it: the same test of another build,
// or another test of the same fixture.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include <gtest/gtest.h>

namespace tactus {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string made = ::testing::TempDir() + "tactus_test_XXXXXX";
    if (::mkdtemp(made.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), made);
    }
    path_ = made;
  }
  ~TemporaryFolder() {
    std::error_code left;  // nothing to be done about it
    std::filesystem::remove_all(path_, left);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::filesystem::path operator/(const TemporaryFolder& folder,
                                       const std::filesystem::path& name) {
  return folder.path() / name;
}

}  // namespace tactus
