#include "command_page.h"

#include <cstddef>
#include <string_view>
#include <utility>

namespace tactus {
namespace {

// The library's notes of what a value may be, "{none,poll}", "INT in [1 - 64]", "DIR".
void AddNote(std::string_view note, OptionPage& page) {
  if (note == "DIR" || note == "FILE") {
    page.value = note;
    page.folder = note == "DIR";
  } else if (note == "POSITIVE") {
    page.bounds = "more than 0";
  } else if (note == "NONNEGATIVE") {
    page.bounds = "0 or more";
  } else if (note.starts_with('{') && note.ends_with('}')) {
    page.choices = CLI::detail::split(std::string(note.substr(1, note.size() - 2)), ',');
  } else if (const auto at = note.find("in ["); at != note.npos) {
    std::string bounds(note.substr(at + 4, note.size() - at - 5));
    const auto dash = bounds.find(" - ");
    if (dash != bounds.npos) bounds.replace(dash, 3, " to ");
    page.bounds = std::move(bounds);
  }
}

OptionPage PageOf(const CLI::Option& option) {
  OptionPage page;
  for (const std::string& name : option.get_snames()) page.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) page.names.push_back("--" + name);
  page.description = option.get_description();
  page.group = option.get_group();
  page.required = option.get_required();
  if (option.get_items_expected_max() == 0) return page;
  page.initial = option.get_default_str();
  // The type, and behind each colon what a validator says of itself.
  const std::vector<std::string> notes = CLI::detail::split(option.get_type_name(), ':');
  if (!notes.empty()) page.value = notes.front();
  for (std::size_t i = 1; i < notes.size(); ++i) AddNote(notes[i], page);
  if (!option.get_option_text().empty()) page.value = option.get_option_text();
  if (page.names.empty()) page.value = option.get_name(/*positional=*/true);
  return page;
}

CommandPage PageOf(const CLI::App& app, std::vector<std::string> words) {
  CommandPage page{
      .words = std::move(words), .description = app.get_description(), .footer = app.get_footer()};
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) page.options.push_back(PageOf(*option));
  }
  for (const CLI::App* below : app.get_subcommands(nullptr)) {
    if (below->get_group().empty()) continue;
    std::vector<std::string> longer = page.words;
    longer.push_back(below->get_name());
    page.commands.push_back(PageOf(*below, std::move(longer)));
  }
  return page;
}

}  // namespace

CommandPage PageOf(const CLI::App& app) { return PageOf(app, {"tactus"}); }

std::string Joined(const std::vector<std::string>& words, const char* between) {
  return CLI::detail::join(words, between);
}

}  // namespace tactus
