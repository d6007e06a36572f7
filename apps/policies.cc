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

// The registry's texts are lists: "key=VALUE: meaning; key=VALUE: meaning".
void PrintOptions(std::string_view options) {
  while (!options.empty()) {
    const std::size_t end = options.find("; ");
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

int RunPolicies(const std::string& name) {
  if (!name.empty()) {
    const auto known = MakePolicy(name);  // for its error, which names those there are
    if (!known) return ReportBadInput(known.error());
  } else {
    fmt::print(
        "A policy is NAME or NAME:key=value,key=value. In a list of policies, a comma before a "
        "name\n"
        "begins the next: edgeserving,symphony:gather=window,aim=0.8,timeout:k=5\n\n");
  }
  const std::string_view wanted = std::string_view(name).substr(0, name.find(':'));
  for (const PolicyInfo& info : Policies()) {
    if (name.empty() || info.name == wanted) PrintPolicy(info);
  }
  fmt::print("  every policy\n");
  PrintOptions(kCommonOptions);
  return 0;
}

}  // namespace

void AddPolicies(CLI::App& app, CommandContext& context) {
  auto name = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("policies", "List the policies and their options");
  command->add_option("name", *name, "One of them");
  command->callback([name, &context] { context.exit_code = RunPolicies(*name); });
}

}  // namespace tactus
