#include "config_file.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "base/nearest.h"
#include "base/whole_file.h"
#include "output_file.h"

namespace tactus {
namespace {

constexpr const char* kConfig = "--config";

bool Names(const std::string& word, const std::string& option) {
  return word == option || word.starts_with(option + "=");
}

std::optional<std::string> FileOf(const std::vector<std::string>& words) {
  const auto named =
      std::ranges::find_if(words, [](const std::string& word) { return Names(word, kConfig); });
  if (named == words.end()) return std::nullopt;
  if (*named != kConfig) return named->substr(named->find('=') + 1);
  return named + 1 == words.end() ? std::nullopt : std::optional(named[1]);
}

std::string Nearest(const CLI::App& command, const std::string& name) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    const std::string& each = option->get_name();
    if (each.starts_with("--")) names.push_back(each.substr(2));
  }
  return DidYouMean(name, names);
}

// The words for one line of the file.
Expected<std::vector<std::string>> WordsFor(const CLI::App& command, const CLI::ConfigItem& item) {
  if (!item.parents.empty()) {
    return InvalidArgument(fmt::format("[{}]: options stand without sections", item.parents[0]));
  }
  const std::string name = "--" + item.name;
  const CLI::Option* option = command.get_option_no_throw(name);
  const bool is_ours = name == kConfig || name == "--help" || name == "--help-all";
  if (option == nullptr || is_ours) {
    return InvalidArgument(fmt::format("there is no option '{}'{}; {} --help-all lists them",
                                       item.name, Nearest(command, item.name), command.get_name()));
  }
  std::vector<std::string> words;
  for (const std::string& value : item.inputs) words.push_back(name + "=" + value);
  return words;
}

}  // namespace

void DeclareConfigFile(CLI::App& command) {
  command
      .add_option_function<std::string>(
          kConfig, [](const std::string&) {},
          "Take options from this file too: NAME = VALUE on each line (TOML), without the dashes; "
          "the command line goes before it")
      ->check(ReadFile())
      ->option_text("FILE");
}

Expected<std::vector<std::string>> WithConfigFile(const CLI::App& app,
                                                  std::vector<std::string> words) {
  if (words.size() < 2) return words;
  const auto commands =
      app.get_subcommands([&](const CLI::App* each) { return each->get_name() == words[1]; });
  if (commands.empty() || commands[0]->get_option_no_throw(kConfig) == nullptr) return words;
  const auto file = FileOf(words);
  if (!file) return words;
  const auto text = ReadWhole(*file, "configuration");
  if (!text) return std::unexpected(text.error());
  std::vector<CLI::ConfigItem> items;
  try {
    std::istringstream in(*text);
    items = CLI::ConfigTOML().from_config(in);
  } catch (const CLI::Error& error) {
    return InvalidArgument(fmt::format("{}: {}", *file, error.what()));
  }
  const std::vector<std::string> given = words;
  for (const CLI::ConfigItem& item : items) {
    auto more = WordsFor(*commands[0], item);
    if (!more)
      return std::unexpected(Error{more.error().code, *file + ": " + more.error().message});
    const auto states = [&](const std::string& word) { return Names(word, "--" + item.name); };
    if (std::ranges::none_of(given, states)) words.insert(words.end(), more->begin(), more->end());
  }
  return words;
}

}  // namespace tactus
