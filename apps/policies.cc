// tactus policies: what may stand behind --policy and --policies, and its options.
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "commands.h"
#include "experiment/experiment.h"
#include "policies/registry.h"

namespace tactus {
namespace {

// Where the first option of the list ends; a "; " in parentheses is part of its meaning.
std::size_t EndOfFirst(std::string_view options) {
  int depth = 0;
  for (std::size_t i = 0; i < options.size(); ++i) {
    depth += options[i] == '(' ? 1 : options[i] == ')' ? -1 : 0;
    if (depth == 0 && options.substr(i).starts_with("; ")) return i;
  }
  return std::string_view::npos;
}

// The registry's texts are lists: "key=VALUE: meaning; key=VALUE: meaning".
void PrintOptions(std::string_view options) {
  while (!options.empty()) {
    const std::size_t end = EndOfFirst(options);
    fmt::print("      {}\n", options.substr(0, end));
    if (end == std::string_view::npos) return;
    options.remove_prefix(end + 2);
  }
}

void PrintPolicy(const PolicyInfo& info) {
  fmt::print("  {}\n    {}\n", info.name, info.summary);
  PrintOptions(info.options);
  if (!info.tuned.empty()) fmt::print("      to compare it: {}\n", info.tuned);
}

int ListAll() {
  for (const PolicyInfo& info : Policies()) fmt::print("  {:<26}{}\n", info.name, info.brief);
  fmt::print(
      "\nNAME:key=value,key=value sets options; `tactus policies NAME` lists them.\n"
      "Commas separate the policies of a list: fifo,timeout:k=5,batch=8,strait\n");
  return 0;
}

int Describe(const std::string& text) {
  const auto known = MakePolicy(text);  // for its error, which names those there are
  if (!known) return ReportBadInput(known.error());
  const std::string_view wanted = std::string_view(text).substr(0, text.find(':'));
  for (const PolicyInfo& info : Policies()) {
    if (info.name == wanted) PrintPolicy(info);
  }
  fmt::print("  every policy\n");
  PrintOptions(kCommonOptions);
  fmt::print("  when to choose it, and its trade-offs: docs/reference/policies.md#{}\n", wanted);
  return 0;
}

}  // namespace

void AddPolicies(CLI::App& app, CommandContext& context) {
  auto name = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("policies", "List the policies, or one with its options");
  command->add_option("name", *name, "Name of the policy whose options to list");
  command->callback(
      [name, &context] { context.exit_code = name->empty() ? ListAll() : Describe(*name); });
}

}  // namespace tactus
