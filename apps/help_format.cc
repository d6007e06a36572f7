#include "help_format.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "commands.h"

namespace tactus {
namespace {

constexpr std::size_t kColumn = 30;    // where the library begins descriptions of options
constexpr std::size_t kCommands = 14;  // and we those of commands
constexpr std::size_t kNarrowest = 50;

std::size_t Columns() { return std::max(OutputColumns().value_or(80), kNarrowest); }

// Where the line's text begins, behind what it describes; nothing where there is no text.
std::optional<std::size_t> TextOf(const std::string& line) {
  const std::size_t begin = line.find_first_not_of(' ');
  if (begin == 0 || begin == kColumn || begin == kCommands) return begin;
  const auto begins_at = [&](std::size_t column) {
    return begin == 2 && line.size() > column && line[column - 1] == ' ' && line[column] != ' ';
  };
  if (begins_at(kCommands) && line[kCommands - 2] == ' ') return kCommands;
  if (begins_at(kColumn)) return kColumn;
  return std::nullopt;
}

// Breaks a line between words. What follows stands below where the text began. Names of options
// stay whole.
std::string Wrapped(const std::string& line, std::size_t columns) {
  const std::optional<std::size_t> column = TextOf(line);
  if (line.size() <= columns || !column) return line;
  const std::size_t indent = *column;
  std::string text;
  std::string row = line.substr(0, indent);
  std::istringstream words(line.substr(indent));
  bool first = true;
  for (std::string word; words >> word; first = false) {
    if (!first && row.size() + 1 + word.size() > columns) {
      text += row + "\n";
      row.assign(indent, ' ');
      first = true;
    }
    row += (first ? "" : " ") + word;
  }
  return text + row;
}

}  // namespace

std::optional<std::size_t> OutputColumns() {
  winsize window{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0) return window.ws_col;
  const char* const said = std::getenv("COLUMNS");
  const long columns = said == nullptr ? 0 : std::strtol(said, nullptr, 10);
  return columns > 0 ? std::optional(static_cast<std::size_t>(columns)) : std::nullopt;
}

std::string HelpFormat::make_help(const CLI::App* app, std::string name,
                                  CLI::AppFormatMode mode) const {
  if (mode == CLI::AppFormatMode::Sub) return make_expanded(app);
  std::istringstream whole(make_description(app) + make_usage(app, std::move(name)) +
                           make_positionals(app) + Groups(*app, mode) +
                           make_subcommands(app, mode) + "\n" + make_footer(app));
  const std::size_t columns = Columns();
  std::string text;
  for (std::string line; std::getline(whole, line);) text += Wrapped(line, columns) + "\n";
  return text;
}

std::string HelpFormat::make_usage(const CLI::App* app, std::string name) const {
  return CLI::Formatter::make_usage(app, name.empty() ? "tactus" : std::move(name));
}

std::string HelpFormat::make_subcommand(const CLI::App* command) const {
  std::ostringstream line;
  CLI::detail::format_help(line, command->get_name(), command->get_description(), kCommands);
  return line.str();
}

std::string HelpFormat::make_option_opts(const CLI::Option* option) const {
  std::string text = CLI::Formatter::make_option_opts(option);
  if (option->get_option_text().empty()) return text;
  std::string initial = option->get_default_str();
  if (initial.starts_with('[') && initial.ends_with(']')) {  // of a list
    initial = initial.substr(1, initial.size() - 2);
  }
  if (!initial.empty()) text += "=" + initial;
  return text + (option->get_required() ? " REQUIRED" : "");
}

std::string HelpFormat::Groups(const CLI::App& app, CLI::AppFormatMode mode) const {
  std::vector<std::string> names = app.get_groups();
  std::ranges::stable_partition(names, [](const auto& name) { return name == kUsualOptions; });
  std::string text;
  std::size_t hidden = 0;
  for (const std::string& name : names) {
    const auto options = app.get_options([&](const CLI::Option* option) {
      return option->get_group() == name && option->nonpositional();
    });
    if (name.empty() || options.empty()) continue;
    if (mode != CLI::AppFormatMode::All && name.ends_with(kMoreOptions)) {
      hidden += options.size();
    } else {
      text += make_group(name, false, options) + "\n";
    }
  }
  if (hidden > 0) text += fmt::format("\n--help-all shows {} more options.\n", hidden);
  return text;
}

}  // namespace tactus
