#include "cluster/site/schedulers_list.h"

namespace tactus {

std::string Joined(const std::vector<std::string>& schedulers) {
  std::string list;
  for (const std::string& each : schedulers) list += (list.empty() ? "" : ",") + each;
  return list;
}

std::optional<std::string> WhyNotOneSite(const std::vector<std::string>& ours,
                                         std::string_view theirs) {
  const bool alone = ours.empty() && theirs.find(',') == theirs.npos;
  if (theirs.empty() || alone || theirs == Joined(ours)) return std::nullopt;
  return "it was told the schedulers " + std::string(theirs) + ", and this scheduler " +
         (ours.empty() ? "none besides itself" : Joined(ours)) +
         ": give --schedulers the same list, in the same order, to all processes of the site";
}

}  // namespace tactus
