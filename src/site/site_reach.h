// Whether the calls of a front end reach workers, for its readiness and that of its models: a
// scheduler leads, and some worker serves the model. Pure: the instant is a parameter.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/serving_time.h"
#include "site/messages.h"

namespace tactus {

class SiteReach {
 public:
  // A take-over takes some ten milliseconds, and processes hear each other every five.
  static constexpr Duration kAway = Seconds(1);

  // The scheduler that the front end follows said something.
  void Heard(TimePoint now) { heard_ = now; }
  // All that the site's workers serve now.
  void Serve(const std::vector<WorkerModel>& models) {
    served_.clear();
    for (const WorkerModel& each : models) served_[each.spec.name] = each.spec.version;
  }

  // Why no call reaches a worker now; nothing: calls do.
  std::optional<std::string> WhyNot(TimePoint now) const {
    if (!heard_ || now - *heard_ > kAway) return "no scheduler answers";
    if (served_.empty()) return "no worker serves";
    return std::nullopt;
  }
  // Why calls of this model do not. `version` < 0: of any version.
  std::optional<std::string> WhyNot(TimePoint now, std::string_view model,
                                    std::int64_t version) const {
    if (auto why = WhyNot(now)) return why;
    const auto found = served_.find(model);
    if (found == served_.end()) return "no worker of the site serves it";
    if (version < 0 || version == found->second) return std::nullopt;
    return "the workers of the site serve version " + std::to_string(found->second);
  }

 private:
  std::optional<TimePoint> heard_;
  std::map<std::string, std::int64_t, std::less<>> served_;  // the version, by name
};

}  // namespace tactus
