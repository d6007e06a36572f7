// tactus replay: decide a journal again; the decisions must be the same, every one.
#include "dispatch/replay.h"

#include <memory>
#include <string>

#include <fmt/format.h>

#include "commands.h"
#include "dispatch/journal_file.h"
#include "experiment/experiment.h"
#include "policies/registry.h"

namespace tactus {
namespace {

int RunReplay(const std::string& path) {
  const auto journal = LoadJournal(path);
  if (!journal) return ReportBadInput(journal.error());
  auto policy = MakePolicy(journal->header.policy);
  if (!policy) return ReportBadInput(policy.error());
  const auto result = Replay(*journal, **policy);
  if (!result) {
    return ReportBadInput({result.error().code, path + ": " + result.error().message});
  }
  fmt::print("{}: policy {}, {} (commit {}){}\n", path, journal->header.policy,
             journal->header.source, journal->header.commit,
             journal->complete ? "" : "; only the beginning: the writer fell behind");
  if (result->difference) {
    fmt::print("DIFFERENT after {} events and {} equal decisions: {}", result->events,
               result->decisions, *result->difference);
    return 1;
  }
  fmt::print("identical: {} decisions for {} events{}\n", result->decisions, result->events,
             result->plans > 0 ? fmt::format(" and {} plans", result->plans) : "");
  return 0;
}

}  // namespace

void AddReplay(CLI::App& app, CommandContext& context) {
  auto path = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("replay", "Decide a journal again and compare every decision");
  command->add_option("journal", *path, "Journal of simulate, measure or serve")->required();
  command->callback([path, &context] { context.exit_code = RunReplay(*path); });
}

}  // namespace tactus
