// tactus describe: the command line as JSON, taken from what the commands declare of themselves.
// The package's manual pages and completions are made of it (tools/deploy/pages.py).
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "commands.h"

namespace tactus {
namespace {

using nlohmann::json;

json Described(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return {{"positional", names.empty() ? option.get_name(/*positional=*/true) : ""},
          {"names", names},
          {"flag", option.get_items_expected_max() == 0},
          {"type", option.get_type_name()},
          {"text", option.get_option_text()},
          {"default", option.get_default_str()},
          {"required", option.get_required()},
          {"group", option.get_group()},
          {"description", option.get_description()}};
}

// Options and commands in the order of --help, without those that it does not show.
json Described(const CLI::App& app, const std::string& name) {
  json options = json::array();
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) options.push_back(Described(*option));
  }
  json commands = json::array();
  for (const CLI::App* below : app.get_subcommands(nullptr)) {
    if (!below->get_group().empty()) commands.push_back(Described(*below, below->get_name()));
  }
  return {{"name", name},
          {"description", app.get_description()},
          {"footer", app.get_footer()},
          {"options", options},
          {"commands", commands}};
}

}  // namespace

void AddDescribe(CLI::App& app, CommandContext&) {
  CLI::App* command = app.add_subcommand("describe", "Print all commands and options as JSON");
  command->group("");  // for tools
  command->callback([&app] {
    const json described = {{"version", kProgramVersion}, {"program", Described(app, "tactus")}};
    fmt::print("{}\n", described.dump(1));
  });
}

}  // namespace tactus
