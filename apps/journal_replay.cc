#include "journal_replay.h"

#include <fmt/format.h>

#include "base/error_line.h"
#include "commands.h"
#include "policies/registry.h"

namespace tactus {

int ReplayFor(const JournalFile& journal, const std::string& path, ReplayWatch& watch) {
  auto policy = MakePolicy(journal.header.policy);
  if (!policy) return ReportBadInput(policy.error());
  const auto replayed = Replay(journal, **policy, &watch);
  if (!replayed) {
    return ReportBadInput({replayed.error().code, path + ": " + replayed.error().message});
  }
  if (!replayed->difference) return 0;
  PrintError(
      fmt::format("{}: this program decides otherwise than the one that wrote it (commit "
                  "{}); look at it with that one",
                  path, journal.header.commit));
  return 1;
}

}  // namespace tactus
