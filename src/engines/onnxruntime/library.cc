#include "engines/onnxruntime/library.h"

#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tactus {
namespace {

// The library reads it as it is opened. Set before there are threads, of which another might read
// the environment meanwhile.
[[maybe_unused]] const int kTelemetryOff = setenv("ORT_DISABLE_TELEMETRY", "1", 1);

namespace fs = std::filesystem;

constexpr const char* kNames[] = {"libonnxruntime.so.1", "libonnxruntime.so"};
constexpr const char* kInstalled = ".cache/onnxruntime/lib";  // below the project's root
constexpr const char* kRemedy =
    "run ./run build to install it, or set ONNXRUNTIME_ROOT to the folder of a release";
constexpr const char* kRemedyWhereTold =
    "name the library or its folder; ./run build installs one into .cache/onnxruntime/lib";

void AddFolder(std::vector<fs::path>& paths, const fs::path& folder) {
  for (const char* name : kNames) paths.push_back(folder / name);
}

// Opens one candidate and starts the vendor's C++ header on it.
Expected<std::string> Open(const fs::path& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Internal(dlerror());
  using GetBase = const OrtApiBase* (*)();
  const auto get_base = reinterpret_cast<GetBase>(dlsym(library, "OrtGetApiBase"));
  const OrtApiBase* base = get_base == nullptr ? nullptr : get_base();
  if (base == nullptr) {
    dlclose(library);
    return Internal(fmt::format("{}: this is not ONNX Runtime", path.string()));
  }
  std::string version = base->GetVersionString();
  // An older library answers null for an API that it does not have; to call through it is a crash.
  const OrtApi* api = base->GetApi(ORT_API_VERSION);
  if (api == nullptr) {
    dlclose(library);
    return Internal(
        fmt::format("{}: version {} is older than the headers that this program was "
                    "built with (API {})",
                    path.string(), version, ORT_API_VERSION));
  }
  Ort::InitApi(api);
  return version;
}

}  // namespace

std::vector<fs::path> LibraryCandidates(const fs::path& library) {
  std::vector<fs::path> paths;
  if (!library.empty()) {
    std::error_code ignored;
    if (fs::is_directory(library, ignored)) {
      AddFolder(paths, library);
    } else {
      paths.push_back(library);
    }
    return paths;
  }
  if (const char* root = std::getenv("ONNXRUNTIME_ROOT"); root != nullptr && *root != '\0') {
    // The library itself is how a Python package has it: its name has the full version.
    std::error_code ignored;
    if (fs::is_regular_file(root, ignored)) {
      paths.emplace_back(root);
    } else {
      AddFolder(paths, fs::path(root) / "lib");
    }
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    AddFolder(paths, program.parent_path());
    // Where the Debian package puts it.
    AddFolder(paths, program.parent_path().parent_path() / "lib" / "tactus");
    for (fs::path above = program.parent_path(); above != above.root_path();
         above = above.parent_path()) {
      AddFolder(paths, above / kInstalled);
    }
  }
  for (const char* name : kNames) paths.emplace_back(name);
  return paths;
}

std::string WhereLooked(const fs::path& library) {
  const std::vector<fs::path> paths = LibraryCandidates(library);
  if (paths.size() == 1) return paths.front().string();
  std::vector<std::string> folders;
  bool installed = false;
  for (const fs::path& path : paths) {
    if (path.filename() != kNames[0]) continue;  // each folder once
    const std::string folder = path.parent_path().string();
    const bool above = library.empty() && folder.ends_with(kInstalled);
    if (above && std::exchange(installed, true)) continue;
    folders.push_back(folder.empty() ? "the system's folders"
                      : above        ? folder + " and that of each folder above"
                                     : folder);
  }
  return fmt::format("{} in {}", fmt::join(kNames, " or "), fmt::join(folders, ", "));
}

Ort::Env MakeEnv(const char* name) {
  Ort::Env env(ORT_LOGGING_LEVEL_FATAL, name);
  env.DisableTelemetryEvents();
  return env;
}

Expected<std::string> OpenOnnxRuntime(const fs::path& library) {
  // The vendor's header keeps one table of functions for the process, so there is one library.
  static std::mutex mutex;
  static std::optional<std::string> opened;
  std::lock_guard lock(mutex);
  if (opened) return *opened;
  std::string unfit;
  for (const fs::path& path : LibraryCandidates(library)) {
    std::error_code ignored;
    if (path.has_parent_path() && !fs::exists(path, ignored)) continue;
    if (path.has_parent_path() && !fs::is_regular_file(path, ignored)) {
      unfit += fmt::format("; {}: is no regular file", path.string());  // to open a pipe would wait
      continue;
    }
    Expected<std::string> version = Open(path);
    if (version) return *(opened = *version);
    const std::string& why = version.error().message;
    // The system's loader: it has none of this name.
    if (!path.has_parent_path() && why.starts_with(path.string() + ": cannot open")) continue;
    unfit += "; " + why;
  }
  return NotFound(fmt::format("ONNX Runtime's library was not found (looked for {}{}); {}",
                              WhereLooked(library), unfit,
                              library.empty() ? kRemedy : kRemedyWhereTold));
}

}  // namespace tactus
