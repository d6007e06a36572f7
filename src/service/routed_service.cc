#include "service/routed_service.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace tactus {
namespace {

// Marks calls of the second service. Services count theirs in the words' lower bits; the two bits
// above are those of services over this one (ensemble, cluster/steps).
constexpr CallId kSecond = CallId{1} << 29;

bool IsUnknown(const Error& error) { return error.code == ErrorCode::kNotFound; }

// Models are unloaded of both: one that has served it before takes it for its own.
Status EitherOf(Status first, Status second) {
  if (first || second) return {};
  return IsUnknown(first.error()) ? second : first;
}

}  // namespace

RoutedService::RoutedService(InferenceService& first, InferenceService& second, Routes routes)
    : first_(first), second_(second), routes_(std::move(routes)) {}

Expected<std::shared_ptr<const ModelSpec>> RoutedService::Find(std::string_view model,
                                                               std::int64_t version) const {
  auto found = first_.Find(model, version);
  if (found) return found;
  auto other = second_.Find(model, version);
  if (other || !IsUnknown(other.error())) return other;
  // Of two that do not have it, the one that knows the name says why.
  const bool second_knows = IsUnknown(found.error()) && second_.Find(model, -1).has_value();
  return second_knows ? std::move(other) : std::move(found);
}

Status RoutedService::ModelReady(std::string_view model, std::int64_t version) const {
  if (first_.Find(model, version)) return first_.ModelReady(model, version);
  if (second_.Find(model, version)) return second_.ModelReady(model, version);
  const auto found = Find(model, version);
  return found ? Status() : std::unexpected(found.error());
}

CallId RoutedService::Infer(InferCall&& call) {
  if (call.model == nullptr || !routes_.calls(*call.model)) return first_.Infer(std::move(call));
  const CallId id = second_.Infer(std::move(call));
  CHECK((id & kSecond) == 0, "call ids leave the bit free");
  return id == 0 ? id : id | kSecond;
}

void RoutedService::Cancel(CallId call) {
  if ((call & kSecond) != 0) return second_.Cancel(call & ~kSecond);
  first_.Cancel(call);
}

bool RoutedService::Live() const { return first_.Live() && second_.Live(); }

bool RoutedService::Ready() const { return first_.Ready() && second_.Ready(); }

std::vector<ModelState> RoutedService::Index() const {
  std::vector<ModelState> all = first_.Index();
  for (ModelState& state : second_.Index()) {
    // What one has given up because the other serves it is not told twice.
    const auto same = std::ranges::find_if(all, [&](const ModelState& known) {
      return known.name == state.name && known.version == state.version;
    });
    if (same == all.end()) {
      all.push_back(std::move(state));
    } else if (state.state == "READY") {
      *same = std::move(state);
    }
  }
  std::ranges::stable_sort(all, {}, &ModelState::name);
  return all;
}

Status RoutedService::Load(const std::string& model, const std::string& config) {
  const bool second = routes_.loads(model, config);
  InferenceService& here = second ? second_ : first_;
  InferenceService& there = second ? first_ : second_;
  Status loaded = here.Load(model, config);
  if (loaded && there.Find(model, -1)) (void)there.Unload(model);
  return loaded;
}

Status RoutedService::Unload(const std::string& model) {
  return EitherOf(first_.Unload(model), second_.Unload(model));
}

Status RoutedService::UnloadWithSteps(const std::string& model) {
  return EitherOf(first_.UnloadWithSteps(model), second_.UnloadWithSteps(model));
}

Expected<std::vector<ModelStatistics>> RoutedService::Statistics(std::string_view model,
                                                                 std::int64_t version) const {
  auto statistics = first_.Statistics(model, version);
  if (!model.empty()) {
    if (statistics) return statistics;
    auto other = second_.Statistics(model, version);
    return other ? std::move(other) : std::move(statistics);
  }
  auto other = second_.Statistics(model, version);
  if (!statistics) return statistics;
  if (!other) return other;
  std::ranges::move(*other, std::back_inserter(*statistics));
  return statistics;
}

}  // namespace tactus
