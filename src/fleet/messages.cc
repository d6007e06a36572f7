#include "fleet/messages.h"

#include <set>

namespace tactus {

std::vector<std::string> ModelsOf(const FleetSlice& slice) {
  std::set<std::string> models;
  for (const SliceInstance& each : slice.instances) models.insert(each.model);
  return {models.begin(), models.end()};
}

const NodeReport& ReportOf(const FromNode& message) {
  return std::visit([](const auto& what) -> const NodeReport& { return what.report; },
                    message.what);
}

}  // namespace tactus
