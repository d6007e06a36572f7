// tactus trace: a journal as a trace for Perfetto.
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/whole_file.h"
#include "commands.h"
#include "dispatch/journal_file.h"
#include "hindsight/perfetto.h"
#include "journal_replay.h"
#include "output_file.h"

namespace tactus {
namespace {

struct TraceCommand {
  std::string journal;
  std::string out = "trace.pftrace";
};

int RunTrace(const TraceCommand& command) {
  const auto journal = LoadJournal(command.journal);
  if (!journal) return ReportBadInput(journal.error());
  PerfettoTrace trace(journal->header.lanes);
  if (const int code = ReplayFor(*journal, command.journal, trace); code != 0) return code;
  const std::string bytes = std::move(trace).Take();
  if (Status written = WriteWhole(bytes, command.out, "trace"); !written) {
    return ReportBadInput(written.error());
  }
  fmt::print("{}: {:.1f} MB; open it at https://ui.perfetto.dev\n", command.out,
             static_cast<double>(bytes.size()) / 1e6);
  return 0;
}

}  // namespace

void AddTrace(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<TraceCommand>();
  CLI::App* command = app.add_subcommand(
      "trace", "Turn a journal into a trace for Perfetto: lanes, batches, requests, queues");
  AddOption(*command, "journal", options->journal, ReadFile(),
            "Journal of simulate, measure or serve")
      ->required();
  AddOption(*command, "--out", options->out, WritableFile(), "File to write")
      ->capture_default_str();
  command->callback([options, &context] { context.exit_code = RunTrace(*options); });
}

}  // namespace tactus
