#include "stream/video_source.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stream/video_library.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

// Beside the program, and where a build and the Debian package have it.
std::vector<std::string> Candidates() {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  return {(folder / kVideoLibrary).string(),
          (folder.parent_path() / "lib" / "tactus" / kVideoLibrary).string()};
}

Expected<const VideoEntry*> Open(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Fail(ErrorCode::kUnimplemented, dlerror());
  const auto* entry = static_cast<const VideoEntry*>(dlsym(library, "tactus_video"));
  const std::string_view version = entry == nullptr ? "none" : entry->version;
  if (version == TACTUS_VERSION) return entry;
  dlclose(library);
  return Fail(ErrorCode::kUnimplemented,
              fmt::format("{}: is of version {}, and this is tactus {}; install the package "
                          "tactus-video of the same version",
                          path, version, TACTUS_VERSION));
}

// Once in a process: where it is not there, a restart finds it.
const Expected<const VideoEntry*>& Library() {
  static const auto library = []() -> Expected<const VideoEntry*> {
    const std::vector<std::string> paths = Candidates();
    for (const std::string& path : paths) {
      std::error_code ignored;
      if (fs::exists(path, ignored)) return Open(path);
    }
    return Fail(ErrorCode::kUnimplemented,
                fmt::format("video is read by {}, which is not there ({}); install the package "
                            "tactus-video, or in a checkout run ./run build video",
                            kVideoLibrary, fmt::join(paths, ", ")));
  }();
  return library;
}

}  // namespace

bool CanReadVideo() { return Library().has_value(); }

Expected<std::unique_ptr<VideoSource>> OpenVideo(const SourceOptions& options,
                                                 std::stop_token stop) {
  const Expected<const VideoEntry*>& library = Library();
  if (library) return (*library)->open(options, std::move(stop));
  return Fail(library.error().code, Shown(options.source) + ": " + library.error().message);
}

}  // namespace tactus
