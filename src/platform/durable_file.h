// A file that is written bit by bit, perhaps by several processes one after the other, and has its
// name only once all of it is on the disk. Until then it is NAME.part.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/expected.h"

namespace tactus {

// What a part of `path` is called.
std::filesystem::path PartOf(const std::filesystem::path& path);

// Errors name the file: kResourceExhausted where the disk or a quota is full, else kInternal, with
// the system's reason.
class DurableFile {
 public:
  // Goes on at the part's end; begins where there is none. Its folder is there.
  static Expected<DurableFile> Open(const std::filesystem::path& path);
  DurableFile(DurableFile&& other) noexcept;
  DurableFile& operator=(DurableFile&&) = delete;
  ~DurableFile();  // what was not kept stays as a part

  std::uint64_t size() const { return size_; }
  Status Append(std::string_view bytes);
  Status Empty();
  // On the disk, and under its name; it can only be read from then on. Nothing may follow.
  Status Keep();

 private:
  DurableFile(std::filesystem::path path, int file, std::uint64_t size);
  std::unexpected<Error> Failed(const char* doing) const;

  std::filesystem::path path_;
  int file_;
  std::uint64_t size_;
};

}  // namespace tactus
