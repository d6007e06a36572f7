#include "platform/durable_file.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/why_not_written.h"

namespace tactus {
namespace {

std::unexpected<Error> FileFailed(const std::filesystem::path& path, const char* doing) {
  const int failed = errno;
  const bool full = failed == ENOSPC || failed == EDQUOT || failed == EFBIG;
  return Fail(full ? ErrorCode::kResourceExhausted : ErrorCode::kInternal,
              path.string() + ": cannot " + doing + ": " + WhyNotWritten(failed));
}

}  // namespace

std::filesystem::path PartOf(const std::filesystem::path& path) {
  std::filesystem::path part = path;
  part += ".part";
  return part;
}

DurableFile::DurableFile(std::filesystem::path path, int file, std::uint64_t size)
    : path_(std::move(path)), file_(file), size_(size) {}

DurableFile::DurableFile(DurableFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), size_(other.size_) {}

DurableFile::~DurableFile() {
  if (file_ >= 0) close(file_);
}

std::unexpected<Error> DurableFile::Failed(const char* doing) const {
  return FileFailed(PartOf(path_), doing);
}

Expected<DurableFile> DurableFile::Open(const std::filesystem::path& path) {
  const std::filesystem::path part = PartOf(path);
  const int file = open(part.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return FileFailed(part, "open it");
  struct stat now {};
  if (fstat(file, &now) != 0) {
    auto failed = FileFailed(part, "look at it");
    close(file);
    return failed;
  }
  return DurableFile(path, file, static_cast<std::uint64_t>(now.st_size));
}

Status DurableFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed("write it");
    bytes.remove_prefix(static_cast<std::size_t>(written));
    size_ += static_cast<std::uint64_t>(written);
  }
  return {};
}

Status DurableFile::Empty() {
  if (ftruncate(file_, 0) != 0) return Failed("empty it");
  size_ = 0;
  return {};
}

Status DurableFile::Keep() {
  if (fchmod(file_, 0444) != 0) return Failed("protect it");
  if (fsync(file_) != 0) return Failed("write it");
  if (rename(PartOf(path_).c_str(), path_.c_str()) != 0) return Failed("rename it");
  const int folder = open(path_.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return FileFailed(path_.parent_path(), "open it");
  const bool synced = fsync(folder) == 0;
  const auto failed = FileFailed(path_.parent_path(), "write it");
  close(folder);
  if (!synced) return failed;
  return {};
}

}  // namespace tactus
