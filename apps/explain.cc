// tactus explain: why the requests of a journal were not in time.
#include <memory>
#include <string>

#include <fmt/format.h>

#include "commands.h"
#include "dispatch/journal_file.h"
#include "hindsight/hindsight.h"
#include "journal_replay.h"

namespace tactus {
namespace {

struct ExplainCommand {
  std::string journal;
  std::string model;
  std::size_t worst = 3;
};

int RunExplain(const ExplainCommand& command) {
  const auto journal = LoadJournal(command.journal);
  if (!journal) return ReportBadInput(journal.error());
  Hindsight hindsight(journal->header.lanes);
  if (const int code = ReplayFor(*journal, command.journal, hindsight); code != 0) return code;
  hindsight.Conclude();
  if (!command.model.empty() && !hindsight.models().contains(command.model)) {
    return ReportBadInput({ErrorCode::kNotFound, fmt::format("{}: has no requests of a model '{}'",
                                                             command.journal, command.model)});
  }
  fmt::print("{}: policy {}, {}{}\n\n{}", command.journal, journal->header.policy,
             journal->header.source,
             journal->complete ? "" : "; so far, or to where its writer ended",
             TextOf(hindsight.models()));
  if (journal->header.source == "served") {
    fmt::print(
        "\nCalls that were refused as they came are in no journal: see "
        "tactus_refused_total.\n");
  }
  for (const Miss& miss : hindsight.Worst(command.worst, command.model)) {
    fmt::print("\n{}", TextOf(miss, hindsight));
  }
  return 0;
}

}  // namespace

void AddExplain(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<ExplainCommand>();
  CLI::App* command = app.add_subcommand(
      "explain", "Read a journal, and say which requests were not in time, and why");
  command->add_option("journal", options->journal, "Journal of simulate, measure or serve")
      ->required();
  command->add_option("--model", options->model, "Only the worst requests of this model");
  command
      ->add_option("--worst", options->worst,
                   "How many requests to explain, those furthest from their deadlines")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  command->callback([options, &context] { context.exit_code = RunExplain(*options); });
}

}  // namespace tactus
