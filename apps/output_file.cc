#include "output_file.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "experiment/kept_files.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWritten = "WritableFile";
constexpr const char* kRead = "ReadFile";

// Read whole before it is written: who goes on from a file may write it back.
constexpr std::pair<std::string_view, std::string_view> kWrittenBack[] = {
    {"--predictor", "--save-predictor"},
    {"--previous", "--json"},
    {"--profile", "--write-overheads"}};

bool Has(CLI::Option* option, const char* validator) try {
  return option->get_validator(validator) != nullptr;
} catch (const CLI::OptionNotFound&) {  // how the library says that it has another validator
  return false;
}

// What the option writes; empty: nothing.
std::string WrittenBy(CLI::Option* option) {
  if (!Has(option, kWritten)) return "";
  return option->count() > 0 ? option->as<std::string>() : option->get_default_str();
}

// FILE or PERCENT=FILE.
fs::path ReadIn(const std::string& text) {
  std::error_code unreadable;
  const std::size_t equals = text.find('=');
  const bool whole = equals == std::string::npos || fs::exists(text, unreadable);
  return whole ? text : text.substr(equals + 1);
}

struct WrittenFile {
  fs::path path;
  std::string option;
};

// Null: none of them is.
const WrittenFile* Find(const std::vector<WrittenFile>& written, const fs::path& path) {
  const auto is_it = [&](const WrittenFile& each) { return SameFile(each.path, path); };
  const auto found = std::ranges::find_if(written, is_it);
  return found == written.end() ? nullptr : &*found;
}

void RefuseIfWritten(const CLI::Option& option, const std::vector<WrittenFile>& written) {
  const std::string reader = option.get_name();
  for (const std::string& text : option.results()) {
    const WrittenFile* const found = Find(written, ReadIn(text));
    if (found == nullptr) continue;
    const std::pair<std::string_view, std::string_view> both(reader, found->option);
    if (std::ranges::find(kWrittenBack, both) != std::end(kWrittenBack)) continue;
    throw CLI::ValidationError(
        found->option, fmt::format("{}: {} reads this file, which would be lost; name another",
                                   ReadIn(text).string(), reader));
  }
}

// Empty: it can.
std::string WhyNotWritable(const std::string& text) {
  const fs::path path = text;
  std::error_code unreadable;  // such a path fails the test of access below
  if (fs::is_directory(path, unreadable)) {
    return fmt::format("{}: is a folder; name a file in it", text);
  }
  // To open a pipe that nobody reads would wait for ever. One that is read stays open to the end of
  // the process: its reader would take a close for the end of what is written.
  if (fs::is_fifo(path, unreadable) && open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC) < 0 &&
      errno == ENXIO) {
    return fmt::format("{}: is a pipe that nobody reads; name a file, or begin its reader first",
                       text);
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::path& touched = fs::exists(path, unreadable) ? path : folder;
  if (access(touched.c_str(), W_OK) == 0) return "";
  return fmt::format("{}: cannot write it; is the folder {} there, and writable?", text,
                     folder.string());
}

std::string WhyNotKept(const std::string& text) {
  std::error_code unreadable;
  const fs::file_status status = fs::status(text, unreadable);
  if (!fs::is_fifo(status) && !fs::is_socket(status)) return WhyNotWritable(text);
  return fmt::format("{}: is a pipe, whose reader could hold up a server that stops; name a file",
                     text);
}

}  // namespace

CLI::Validator KeptFile() { return {WhyNotKept, "FILE", kWritten}; }

CLI::Validator WritableFile() { return {WhyNotWritable, "FILE", kWritten}; }

CLI::Validator ReadFile() {
  return {[](const std::string&) { return std::string(); }, "", kRead};
}

void RefuseSharedFiles(CLI::App& command) {
  std::vector<WrittenFile> written;
  for (CLI::Option* option : command.get_options()) {
    const std::string name = WrittenBy(option);
    if (name.empty() || MayBeShared(name)) continue;
    if (const WrittenFile* const first = Find(written, name)) {
      throw CLI::ValidationError(
          option->get_name(),
          fmt::format("{}: {} writes this file too; give each its own", name, first->option));
    }
    written.push_back({name, option->get_name()});
  }
  for (CLI::Option* option : command.get_options()) {
    if (Has(option, kRead)) RefuseIfWritten(*option, written);
  }
  for (CLI::App* below : command.get_subcommands()) RefuseSharedFiles(*below);
}

}  // namespace tactus
