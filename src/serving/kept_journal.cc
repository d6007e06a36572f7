#include "serving/kept_journal.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

namespace tactus {

Status KeepOldJournal(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failed;
  if (!fs::is_regular_file(path, failed) || fs::file_size(path, failed) == 0) return {};
  fs::rename(path, path + ".old", failed);
  if (!failed) return {};
  return Fail(ErrorCode::kUnavailable,
              fmt::format("{}: the journal of the last run cannot be kept as {}.old ({}): move it, "
                          "or give --journal another name",
                          path, path, failed.message()));
}

}  // namespace tactus
