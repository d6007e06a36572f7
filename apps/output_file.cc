#include "output_file.h"

#include <filesystem>
#include <map>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

namespace tactus {
namespace {

namespace fs = std::filesystem;

constexpr const char* kValidator = "WritableFile";

// Whether the command line names a file to write with it.
bool IsWritten(CLI::Option* option) try {
  return option->get_validator(kValidator) != nullptr && option->count() > 0;
} catch (const CLI::OptionNotFound&) {  // how the library says that it has another validator
  return false;
}

// Empty: it can.
std::string WhyNotWritable(const std::string& text) {
  const fs::path path = text;
  std::error_code unreadable;  // such a path fails the test of access below
  if (fs::is_directory(path, unreadable)) {
    return fmt::format("{}: is a folder; name a file in it", text);
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::path& touched = fs::exists(path, unreadable) ? path : folder;
  if (access(touched.c_str(), W_OK) == 0) return "";
  return fmt::format("{}: cannot write it; is the folder {} there, and writable?", text,
                     folder.string());
}

}  // namespace

CLI::Validator WritableFile() { return {WhyNotWritable, "FILE", kValidator}; }

void RefuseSharedFiles(CLI::App& command) {
  std::map<fs::path, std::string> taken;
  for (CLI::Option* option : command.get_options()) {
    if (!IsWritten(option)) continue;
    const auto name = option->as<std::string>();
    std::error_code unreadable;  // then the path stands for itself
    if (fs::exists(name, unreadable) && !fs::is_regular_file(name, unreadable)) continue;
    const fs::path path = fs::weakly_canonical(name, unreadable);
    const auto [first, alone] =
        taken.emplace(unreadable ? fs::path(name) : path, option->get_name());
    if (alone) continue;
    throw CLI::ValidationError(
        option->get_name(),
        fmt::format("{}: {} writes this file too; give each its own", name, first->second));
  }
  for (CLI::App* below : command.get_subcommands()) RefuseSharedFiles(*below);
}

}  // namespace tactus
