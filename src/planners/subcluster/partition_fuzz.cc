// Any bytes as a partition problem, and what follows a NUL in them as the previous partition:
// parsed or refused, never a crash; and what is parsed can be searched within its limits.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "planners/subcluster/partition_file.h"
#include "planners/subcluster/partition_search.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\0');
  auto problem = tactus::ParsePartitionProblem(text.substr(0, end), "fuzz.toml");
  if (!problem) return 0;
  if (end != std::string_view::npos &&
      tactus::ParsePreviousPartition(text.substr(end + 1), "fuzz.json", *problem)) {
    problem->most_cost = static_cast<double>(problem->models.size() / 2);
  }
  if (problem->sub_clusters > 64) return 0;  // legal, but slow
  const auto found = tactus::SearchPartition(*problem, {.most_trials = 2000});
  if (found && !tactus::BrokenLimit(*problem, found->partition).empty()) std::abort();
  return 0;
}
