// tactus replay: decide a journal again; the decisions must be the same, every one.
#include "dispatch/replay.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "base/whole_file.h"
#include "commands.h"
#include "dispatch/journal_file.h"
#include "ensemble/pipeline_journal.h"
#include "experiment/experiment.h"
#include "pipeline/flow_replay.h"
#include "policies/registry.h"

namespace tactus {
namespace {

const char* HowWhole(bool complete, bool cut_off) {
  if (cut_off) {
    return "; only the beginning: it has no end, because its writer still runs or was killed, or "
           "the copy is incomplete";
  }
  return complete ? "" : "; only the beginning: the writer fell behind";
}

int RunPipelines(const std::string& path) {
  const auto text = ReadWhole(path, "journal of pipelines");
  if (!text) return ReportBadInput(text.error());
  const auto result = ReplayFlows(*text, path);
  if (!result) return ReportBadInput(result.error());
  fmt::print("{}: {} pipelines (commit {}){}\n", path, result->pipelines, result->commit,
             HowWhole(result->complete, result->cut_off));
  if (result->difference) {
    fmt::print("DIFFERENT after {} events and {} equal decisions: {}\n", result->events,
               result->decisions, *result->difference);
    return 1;
  }
  fmt::print("identical: {} decisions for {} events of {} requests\n", result->decisions,
             result->events, result->requests);
  return 0;
}

bool IsOfPipelines(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string head(kFlowJournalHead.size(), '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  return head == kFlowJournalHead;
}

int RunDispatcher(const std::string& path) {
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
             HowWhole(journal->complete, journal->cut_off));
  if (result->difference) {
    fmt::print("DIFFERENT after {} events and {} equal decisions: {}", result->events,
               result->decisions, *result->difference);
    return 1;
  }
  fmt::print("identical: {} decisions for {} events{}\n", result->decisions, result->events,
             result->plans > 0 ? fmt::format(" and {} plans", result->plans) : "");
  return 0;
}

// A server's journal is two files: of its dispatcher and of its pipelines.
int RunReplay(const std::string& path) {
  std::error_code none;
  if (std::filesystem::exists(path, none) && !std::filesystem::is_regular_file(path, none)) {
    // Of a pipe nobody would know whether anything ever comes.
    return ReportBadInput({ErrorCode::kInvalidArgument,
                           path + ": no regular file; a journal is what --journal has written"});
  }
  if (IsOfPipelines(path)) return RunPipelines(path);
  const int code = RunDispatcher(path);
  const std::string beside = PipelineJournalBeside(path);
  if (code == 2 || !IsOfPipelines(beside)) return code;
  return std::max(code, RunPipelines(beside));
}

}  // namespace

void AddReplay(CLI::App& app, CommandContext& context) {
  auto path = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("replay", "Read a journal, make its decisions again, and compare them");
  command->add_option("journal", *path, "Journal of simulate, measure or serve")->required();
  command->callback([path, &context] { context.exit_code = RunReplay(*path); });
}

}  // namespace tactus
