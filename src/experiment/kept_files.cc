#include "experiment/kept_files.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

namespace tactus {
namespace {

namespace fs = std::filesystem;

// As far as links and what exists of the path tell which file it is.
fs::path Resolved(const fs::path& path) {
  std::error_code unreadable;  // then the path stands for itself
  const fs::path resolved = fs::weakly_canonical(path, unreadable);
  return unreadable ? path : resolved;
}

}  // namespace

bool SameFile(const fs::path& a, const fs::path& b) {
  std::error_code unreadable;  // then names must do
  return Resolved(a) == Resolved(b) || fs::equivalent(a, b, unreadable);
}

bool MayBeShared(const fs::path& path) {
  std::error_code unreadable;
  return fs::exists(path, unreadable) && !fs::is_regular_file(path, unreadable);
}

Status KeepFiles(const std::string& by, const std::vector<fs::path>& read,
                 const std::vector<std::string>& written) {
  for (const std::string& name : written) {
    if (name.empty() || MayBeShared(name)) continue;
    const auto is_it = [&](const fs::path& path) { return !path.empty() && SameFile(path, name); };
    if (std::ranges::none_of(read, is_it)) continue;
    return InvalidArgument(fmt::format(
        "{}: {} reads this file, which would be lost; name another to write", name, by));
  }
  return {};
}

Status KeepFilesOf(const Scenario& scenario, const std::vector<std::string>& written) {
  return KeepFiles(scenario.name, {scenario.profile, scenario.trace, scenario.schedule}, written);
}

}  // namespace tactus
