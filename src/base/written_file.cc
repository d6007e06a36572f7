#include "base/written_file.h"

#include <cerrno>
#include <fstream>
#include <string>

#include "base/why_not_written.h"

namespace tactus {

Status WriteFileText(std::string_view text, const std::filesystem::path& path,
                     std::string_view what) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  const int failed = errno;
  if (file) return {};
  return Fail(ErrorCode::kUnavailable, path.string() + ": cannot write the " + std::string(what) +
                                           ": " + WhyNotWritten(failed));
}

}  // namespace tactus
