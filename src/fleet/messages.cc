#include "fleet/messages.h"

#include <set>

namespace tactus {

std::vector<std::string> ModelsOf(const FleetSlice& slice) {
  std::set<std::string> models;
  for (const SliceInstance& each : slice.instances) models.insert(each.model);
  return {models.begin(), models.end()};
}

std::uint64_t SumOf(const std::vector<PeerPlace>& peers) {
  if (peers.empty()) return 0;
  std::uint64_t sum = 14695981039346656037ULL;  // FNV-1a
  const auto add = [&sum](const std::string& text) {
    for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    sum = (sum ^ 0xffU) * 1099511628211ULL;  // in no text's bytes: where one ends counts
  };
  for (const PeerPlace& each : peers) {
    add(each.node);
    add(each.address);
  }
  return sum;
}

const NodeReport& ReportOf(const FromNode& message) {
  return std::visit([](const auto& what) -> const NodeReport& { return what.report; },
                    message.what);
}

}  // namespace tactus
