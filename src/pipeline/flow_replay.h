// Tells new Flows what those of a journal were told, and compares every word that they say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace tactus {

struct FlowReplayResult {
  std::string commit;           // of the program that wrote the journal
  std::uint64_t pipelines = 0;  // Flows: of each pipeline one, and one more whenever it was rebound
  std::uint64_t requests = 0;
  std::uint64_t events = 0;     // what they were told
  std::uint64_t decisions = 0;  // what they said: starts, rows given up, cancellations, ends
  bool complete = true;
  bool cut_off = false;  // it has no end, so it is not complete either
  // The first difference, with its line; nothing when every word was the same.
  std::optional<std::string> difference;
};

// `where`: the file's name. What was cut off is replayed as far as it goes. kInvalidArgument with
// file and line: not a journal of pipelines, a line that no Flow could have written, such as the
// answer of a run that was not started.
Expected<FlowReplayResult> ReplayFlows(std::string_view text, std::string_view where);

}  // namespace tactus
