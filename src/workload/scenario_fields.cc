#include "workload/scenario_fields.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "core/request.h"
#include "core/shares.h"
#include "workload/csv.h"
#include "workload/pipelines.h"

namespace tactus {
namespace {

constexpr std::string_view kProcesses = "poisson|gamma|uniform|trace|closed";
constexpr std::string_view kUtilizationBases = "largest-batch|device";
constexpr std::string_view kPlanners = "none|gpulet|gpulet-retry|self-tuning|nexus|nexus-half";
constexpr std::string_view kIdeal =
    "; 'ideal' is for `tactus plan gpulet` alone, too slow for a load that changes";
constexpr std::string_view kPopularities = "equal|ratio|zipf";
constexpr std::string_view kDeadlineRules = "latency|equal|whole|redivide|persist|spare";
constexpr std::string_view kAnswerRules = "all|each";

constexpr double kMostRps = 1e7;
constexpr double kLongestSeconds = 1e6;
constexpr double kLongestMillis = 1e8;
constexpr double kMostBytes = 1e12;
constexpr double kMostInteger = 9007199254740992.0;  // 2^53: every whole number up to it is exact

using S = Scenario;
using M = ScenarioModel;
using K = LaneKind;
using F = LaneFault;
using P = ScenarioPipeline;
using G = ScenarioStage;

constexpr std::array kScenarioFields = {
    ScenarioField<S>{"scenario", "name", &S::name},
    ScenarioField<S>{"scenario", "about", &S::about},
    ScenarioField<S>{"scenario", "duration_s", &S::duration_s, 1e-3, kLongestSeconds},
    ScenarioField<S>{"scenario", "warmup_s", &S::warmup_s, 0, kLongestSeconds},
    ScenarioField<S>{"scenario", "warmup_requests", &S::warmup_requests, 0, kMostInteger},
    ScenarioField<S>{"scenario", "seed", &S::seed, 0, kMostInteger},
    ScenarioField<S>{"scenario", "policy", &S::policy},
    ScenarioField<S>{"scenario", "expiry", &S::expiry, 0, 0, "never|passed|unmeetable"},
    ScenarioField<S>{"scenario", "queue_capacity", &S::queue_capacity, 1, 1 << 24},
    ScenarioField<S>{"scenario", "profile", &S::profile},
    ScenarioField<S>{"scenario", "percentile", &S::percentile, 0, 100},
    ScenarioField<S>{"scenario", "jitter_ms", &S::jitter_ms, 0, kLongestMillis},
    ScenarioField<S>{"scenario", "decision_cost_us", &S::decision_cost_us, 0, 1e9},
    ScenarioField<S>{"scenario", "candidate_cost_us", &S::candidate_cost_us, 0, 1e9},
    ScenarioField<S>{"scenario", "follow", &S::follow, 0, 0, "auto|yes|stalls|no"},
    ScenarioField<S>{"lanes", "count", &S::lanes, 1, 4096, "auto"},
    ScenarioField<S>{"lanes", "slots", &S::slots, 1, 64},
    ScenarioField<S>{"lanes", "processors", &S::processors, 1, 4096},
    ScenarioField<S>{"contention", "capacity", &S::capacity, 0.01, 100},
    ScenarioField<S>{"contention", "crosstalk", &S::crosstalk, 0, 10},
    ScenarioField<S>{"contention", "tail", &S::tail, 0, 2},
    ScenarioField<S>{"contention", "priority_weight", &S::priority_weight, 1, 100},
    ScenarioField<S>{"contention", "preemption_ms", &S::preemption_ms, 0, kLongestMillis},
    ScenarioField<S>{"contention", "drift", &S::drift, 0, 1},
    ScenarioField<S>{"drift", "from_s", &S::drift_from_s, 0, kLongestSeconds},
    ScenarioField<S>{"drift", "factor", &S::drift_factor, 0.1, 100},
    ScenarioField<S>{"drift", "stall_ms", &S::drift_stall_ms, 0, kLongestMillis},
    ScenarioField<S>{"drift", "every_ms", &S::drift_every_ms, 1e-3, kLongestMillis},
    ScenarioField<S>{"front", "call_us", &S::front_call_us, 0, 1e6},
    ScenarioField<S>{"front", "byte_ns", &S::front_byte_ns, 0, 1e3},
    ScenarioField<S>{"front", "unread_bytes", &S::front_unread_bytes, 0, 1e9},
    ScenarioField<S>{"front", "threads", &S::front_threads, 1, 1024},
    ScenarioField<S>{"front", "reads", &S::front_reads, 0, 0, "in-time|all"},
    ScenarioField<S>{"front", "cores", &S::front_cores, 0, 0, "own|shared"},
    ScenarioField<S>{"autoscale", "interval_s", &S::scale_interval_s, 0, kLongestSeconds},
    ScenarioField<S>{"autoscale", "window_s", &S::scale_window_s, 1e-3, kLongestSeconds},
    ScenarioField<S>{"autoscale", "start_delay_s", &S::scale_start_delay_s, 0, kLongestSeconds},
    ScenarioField<S>{"autoscale", "initial", &S::scale_initial, 1, 4096},
    ScenarioField<S>{"autoscale", "least", &S::scale_least, 1, 4096},
    ScenarioField<S>{"autoscale", "bad_threshold", &S::bad_threshold, 0, 0.999},
    ScenarioField<S>{"autoscale", "idle_threshold", &S::idle_threshold, 0, 0.999},
    ScenarioField<S>{"autoscale", "idle_kept", &S::idle_kept, 0, 0.999},
    ScenarioField<S>{"plan", "shares", &S::plan_shares, 1, 99},
    ScenarioField<S>{"plan", "exponent", &S::plan_exponent, 0, 4},
    ScenarioField<S>{"plan", "utilization_base", &S::plan_utilization_base, 0, 0,
                     kUtilizationBases},
    ScenarioField<S>{"plan", "memory_mb", &S::plan_memory_mb, 0, 1e9},
    ScenarioField<S>{"plan", "planner", &S::plan_planner, 0, 0, kPlanners, kIdeal},
    ScenarioField<S>{"plan", "interference", &S::plan_interference, -100, 100},
    ScenarioField<S>{"plan", "period_s", &S::plan_period_s, 1, kLongestSeconds},
    ScenarioField<S>{"plan", "weight", &S::plan_weight, 0.01, 1},
    ScenarioField<S>{"plan", "headroom", &S::plan_headroom, 0, 10},
    ScenarioField<S>{"plan", "bad_threshold", &S::plan_bad_threshold, 0, 0.999},
    ScenarioField<S>{"plan", "make_least_s", &S::plan_make_least_s, 0, kLongestSeconds},
    ScenarioField<S>{"plan", "make_most_s", &S::plan_make_most_s, 0, kLongestSeconds},
    ScenarioField<S>{"plan", "make_fails", &S::plan_make_fails, 0, 1},
    ScenarioField<S>{"arrivals", "process", &S::process, 0, 0, kProcesses},
    ScenarioField<S>{"arrivals", "rate_rps", &S::rate_rps, 0, kMostRps},
    ScenarioField<S>{"arrivals", "cv", &S::cv, 0.01, 100},
    ScenarioField<S>{"arrivals", "trace", &S::trace},
    ScenarioField<S>{"arrivals", "callers", &S::callers, 1, 1e6},
    ScenarioField<S>{"arrivals", "think_ms", &S::think_ms, 0, kLongestMillis},
    ScenarioField<S>{"arrivals", "retry_ms", &S::retry_ms, 0.1, kLongestMillis},
    ScenarioField<S>{"arrivals", "schedule", &S::schedule},
    ScenarioField<S>{"arrivals", "popularity", &S::popularity, 0, 0, kPopularities},
    ScenarioField<S>{"arrivals", "zipf", &S::zipf, 0, 10},
};

constexpr std::array kModelFields = {
    ScenarioField<M>{"models", "name", &M::name},
    ScenarioField<M>{"models", "profile_as", &M::profile_as},
    ScenarioField<M>{"models", "slo_ms", &M::slo_ms, 1e-3, kLongestMillis},
    ScenarioField<M>{"models", "max_batch", &M::max_batch, 0, 4096},
    ScenarioField<M>{"models", "ratio", &M::ratio, 0, 1e6},
    ScenarioField<M>{"models", "priority", &M::priority, 1, kLowestPriority},
    ScenarioField<M>{"models", "rate_rps", &M::rate_rps, 0, kMostRps},
    ScenarioField<M>{"models", "exits", &M::exits},
    ScenarioField<M>{"models", "accuracy", &M::accuracy, 0, 1},
    ScenarioField<M>{"models", "bytes", &M::bytes, 0, kMostBytes},
};

constexpr std::array kLaneKindFields = {
    ScenarioField<K>{"lane_kinds", "name", &K::name},
    ScenarioField<K>{"lane_kinds", "count", &K::count, 0, 4096},
    ScenarioField<K>{"lane_kinds", "speed", &K::speed, 0.001, 1000},
    ScenarioField<K>{"lane_kinds", "models", &K::models},
};

constexpr std::array kLaneFaultFields = {
    ScenarioField<F>{"lane_faults", "lane", &F::lane, 0, 4095},
    ScenarioField<F>{"lane_faults", "at_s", &F::at_s, 0, kLongestSeconds},
    ScenarioField<F>{"lane_faults", "back_s", &F::back_s, 0, kLongestSeconds},
};

constexpr std::array kPipelineFields = {
    ScenarioField<P>{"pipelines", "name", &P::name},
    ScenarioField<P>{"pipelines", "slo_ms", &P::slo_ms, 1e-3, kLongestMillis},
    ScenarioField<P>{"pipelines", "ratio", &P::ratio, 0, 1e6},
    ScenarioField<P>{"pipelines", "rate_rps", &P::rate_rps, 0, kMostRps},
    ScenarioField<P>{"pipelines", "deadlines", &P::deadlines, 0, 0, kDeadlineRules},
    ScenarioField<P>{"pipelines", "answer", &P::answer, 0, 0, kAnswerRules},
    ScenarioField<P>{"pipelines", "bytes", &P::bytes, 0, kMostBytes},
};

constexpr std::array kStageFields = {
    ScenarioField<G>{"pipelines.stages", "name", &G::name},
    ScenarioField<G>{"pipelines.stages", "model", &G::model},
    ScenarioField<G>{"pipelines.stages", "after", &G::after},
    ScenarioField<G>{"pipelines.stages", "count", &G::count, 1, 1000},
    ScenarioField<G>{"pipelines.stages", "budget_ms", &G::budget_ms, 1e-3, kLongestMillis},
    ScenarioField<G>{"pipelines.stages", "rows", &G::rows, 0, 1e6},
    ScenarioField<G>{"pipelines.stages", "gather", &G::gather},
};

// Reads one value into one member; `problem` says what it should have been.
template <class Owner>
class Assignment {
 public:
  Assignment(const ScenarioField<Owner>& field, Owner& owner, const std::filesystem::path& folder)
      : field_(field), owner_(owner), folder_(folder) {}

  Status From(const ScenarioValue& value) {
    const bool fits =
        std::visit([&](auto member) { return Set(owner_.*member, value); }, field_.target);
    if (fits) return {};
    return InvalidArgument(
        std::visit([&](auto member) { return Wanted(owner_.*member); }, field_.target));
  }

 private:
  std::optional<double> Number(const ScenarioValue& value) const {
    std::optional<double> number;
    if (const auto* whole = std::get_if<std::int64_t>(&value.is)) number = double(*whole);
    if (const auto* real = std::get_if<double>(&value.is)) number = *real;
    if (!number || !(*number >= field_.low && *number <= field_.high)) return {};
    return number;
  }
  bool Set(double& member, const ScenarioValue& value) const {
    const auto number = Number(value);
    if (number) member = *number;
    return number.has_value();
  }
  // An empty text (--set KEY=) restores the default.
  bool Set(std::optional<double>& member, const ScenarioValue& value) const {
    const auto* text = std::get_if<std::string>(&value.is);
    const auto number = Number(value);
    const bool fits = number || (text != nullptr && text->empty());
    if (fits) member = number;
    return fits;
  }
  template <class Whole>
  requires std::is_integral_v<Whole>
  bool Set(Whole& member, const ScenarioValue& value) const {
    const auto* text = std::get_if<std::string>(&value.is);
    const auto number = text != nullptr && *text == field_.names ? 0.0 : Number(value);
    if (!number || *number != std::floor(*number)) return false;
    member = static_cast<Whole>(*number);
    return true;
  }
  bool Set(std::string& member, const ScenarioValue& value) const {
    const auto* text = std::get_if<std::string>(&value.is);
    if (text == nullptr || text->empty()) return false;
    if (!field_.names.empty() && !Place(*text)) return false;
    member = *text;
    return true;
  }
  bool Set(std::filesystem::path& member, const ScenarioValue& value) const {
    const auto* text = std::get_if<std::string>(&value.is);
    if (text == nullptr || text->empty()) return false;
    member = std::filesystem::absolute(folder_ / *text).lexically_normal();
    return true;
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  bool Set(Enum& member, const ScenarioValue& value) const {
    const auto* text = std::get_if<std::string>(&value.is);
    const auto place = text != nullptr ? Place(*text) : std::nullopt;
    if (place) member = static_cast<Enum>(*place);
    return place.has_value();
  }
  template <class Item>
  bool Set(std::vector<Item>& member, const ScenarioValue& value) const {
    const auto* list = std::get_if<std::vector<ScenarioValue>>(&value.is);
    if (list == nullptr) return false;
    std::vector<Item> items(list->size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!Set(items[i], (*list)[i])) return false;
    }
    member = std::move(items);
    return true;
  }
  // The word's place among the allowed ones, which is the enum's value.
  std::optional<std::size_t> Place(std::string_view word) const {
    const auto names = SplitTrimmed(field_.names, '|');
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == word) return i;
    }
    return {};
  }

  template <class Member>
  std::string Wanted(const Member&) const {
    if (std::is_integral_v<Member> && !field_.names.empty()) {
      return fmt::format("must be a whole number from {} to {:.0f}, or {}", field_.low, field_.high,
                         field_.names);
    }
    if (!field_.names.empty()) {
      std::string names(field_.names);
      for (std::size_t at; (at = names.find('|')) != std::string::npos;) names.replace(at, 1, ", ");
      return fmt::format("must be one of {}{}", names, field_.remark);
    }
    if constexpr (std::is_floating_point_v<Member> ||
                  std::is_same_v<Member, std::optional<double>>) {
      return fmt::format("must be a number from {} to {}", field_.low, field_.high);
    } else if constexpr (std::is_integral_v<Member>) {
      return fmt::format("must be a whole number from {} to {:.0f}", field_.low, field_.high);
    } else if constexpr (std::is_same_v<Member, std::vector<double>>) {
      return fmt::format("must be a list of numbers from {} to {}", field_.low, field_.high);
    } else if constexpr (std::is_same_v<Member, std::vector<std::string>>) {
      return "must be a list of strings, none of them empty";
    } else {
      return "must not be an empty string";
    }
  }

  const ScenarioField<Owner>& field_;
  Owner& owner_;
  const std::filesystem::path& folder_;
};

}  // namespace

std::span<const ScenarioField<Scenario>> ScenarioFields() { return kScenarioFields; }
std::span<const ScenarioField<ScenarioModel>> ModelFields() { return kModelFields; }
std::span<const ScenarioField<LaneKind>> LaneKindFields() { return kLaneKindFields; }
std::span<const ScenarioField<LaneFault>> LaneFaultFields() { return kLaneFaultFields; }
std::span<const ScenarioField<ScenarioPipeline>> PipelineFields() { return kPipelineFields; }
std::span<const ScenarioField<ScenarioStage>> StageFields() { return kStageFields; }

template <class Owner>
Status Assign(const ScenarioField<Owner>& field, Owner& owner, const ScenarioValue& value,
              const std::filesystem::path& folder) {
  return Assignment(field, owner, folder).From(value);
}
template Status Assign(const ScenarioField<S>&, S&, const ScenarioValue&,
                       const std::filesystem::path&);
template Status Assign(const ScenarioField<M>&, M&, const ScenarioValue&,
                       const std::filesystem::path&);
template Status Assign(const ScenarioField<K>&, K&, const ScenarioValue&,
                       const std::filesystem::path&);
template Status Assign(const ScenarioField<F>&, F&, const ScenarioValue&,
                       const std::filesystem::path&);
template Status Assign(const ScenarioField<P>&, P&, const ScenarioValue&,
                       const std::filesystem::path&);
template Status Assign(const ScenarioField<G>&, G&, const ScenarioValue&,
                       const std::filesystem::path&);

namespace {

Status ValidateLaneKinds(const Scenario& scenario) {
  if (scenario.lane_kinds.empty()) return {};
  int lanes = 0;
  std::set<std::string_view> names = {kPlainLanes};
  for (const LaneKind& kind : scenario.lane_kinds) {
    lanes += kind.count;
    if (names.insert(kind.name).second) continue;
    return InvalidArgument(fmt::format(
        "two lane kinds are called '{0}' ('{1}' is the name of the lanes in no [[lane_kinds]]); "
        "rename one",
        kind.name, kPlainLanes));
  }
  if (lanes > scenario.lanes) {
    return InvalidArgument(fmt::format(
        "[[lane_kinds]] declare {} lanes, but [lanes] count is {}; set it to {} or more", lanes,
        scenario.lanes, lanes));
  }
  if (!scenario.capacity.empty()) {
    return InvalidArgument(
        "[contention] needs lanes of one kind: the use of other kinds is not known; leave out "
        "[contention] or [[lane_kinds]]");
  }
  return {};
}

Status ValidateAutoLanes(const Scenario& scenario) {
  if (scenario.lanes != kAutoLanes) return {};
  if (scenario.processors == 0) {
    return InvalidArgument(
        "[lanes] count = \"auto\" needs a machine: processors = 16 in [lanes] says how large");
  }
  if (scenario.lane_kinds.empty() && scenario.lane_faults.empty() &&
      scenario.scale_interval_s == 0 && scenario.plan_planner == "none" &&
      scenario.plan_shares.empty() && scenario.pipelines.empty()) {
    return {};
  }
  return InvalidArgument(
      "[lanes] count = \"auto\" is for equal lanes that stay, and for models without pipelines; "
      "state a number, or leave out [[lane_kinds]], [[lane_faults]], [autoscale], [plan] and "
      "[[pipelines]]");
}

// Every model must have a lane: else its requests would wait for nothing.
Status ValidatePins(const Scenario& scenario) {
  if (scenario.lane_kinds.empty()) return {};
  for (const LaneKind& kind : scenario.lane_kinds) {
    for (const std::string& name : kind.models) {
      if (HasModel(scenario, name)) continue;
      return InvalidArgument(
          fmt::format("[[lane_kinds]] '{}' is for model '{}', which is not in the scenario; "
                      "remove it from the lane kind, or add it to [[models]]",
                      kind.name, name));
    }
  }
  const std::vector<LaneKind> kinds = LaneKinds(scenario);
  for (const ScenarioModel& model : scenario.models) {
    const auto served = [&](const LaneKind& kind) { return MayRun(kind, model.name); };
    if (std::ranges::any_of(kinds, served)) continue;
    return InvalidArgument(
        fmt::format("no lane may run model '{}'; name it in the models of one of the "
                    "[[lane_kinds]], or leave a "
                    "lane to all models",
                    model.name));
  }
  return {};
}

Status ValidateLaneFaults(const Scenario& scenario) {
  for (const LaneFault& fault : scenario.lane_faults) {
    if (fault.lane >= scenario.lanes) {
      return InvalidArgument(
          fmt::format("[[lane_faults]] lane = {}: there are lanes 0 to {} ([lanes] count = {})",
                      fault.lane, scenario.lanes - 1, scenario.lanes));
    }
    if (fault.back_s != 0 && fault.back_s <= fault.at_s) {
      return InvalidArgument(
          fmt::format("[[lane_faults]] lane = {}: back_s ({}) must be after at_s ({}), or 0: never",
                      fault.lane, fault.back_s, fault.at_s));
    }
  }
  const bool changing = scenario.scale_interval_s > 0 || scenario.plan_planner != "none";
  if (scenario.lane_faults.empty() || !changing) return {};
  return InvalidArgument(
      "[[lane_faults]] need lanes that do not change; leave them out, or [autoscale] and [plan] "
      "planner");
}

Status ValidateDrift(const Scenario& scenario) {
  if (scenario.drift_stall_ms == 0) return {};
  if (scenario.drift_stall_ms >= scenario.drift_every_ms) {
    return InvalidArgument(
        fmt::format("[drift] stall_ms ({}) must be less than every_ms ({}): nothing would ever run",
                    scenario.drift_stall_ms, scenario.drift_every_ms));
  }
  if (scenario.capacity.empty()) return {};
  return InvalidArgument(
      "[drift] stall_ms cannot be simulated together with [contention]; leave out one of them");
}

Status ValidatePlan(const Scenario& scenario) {
  const std::vector<double>& shares = scenario.plan_shares;
  if (!scenario.plan_interference.empty() && scenario.plan_interference.size() != 5) {
    return InvalidArgument("[plan] interference has five coefficients, c1 to c5");
  }
  if (scenario.plan_make_least_s > scenario.plan_make_most_s) {
    return InvalidArgument(fmt::format("[plan] make_least_s ({}) must not exceed make_most_s ({})",
                                       scenario.plan_make_least_s, scenario.plan_make_most_s));
  }
  if (scenario.plan_planner != "none" && scenario.scale_interval_s > 0) {
    return InvalidArgument(
        "[plan] planner and [autoscale] both decide which lanes there are; leave one of them out");
  }
  if (shares.empty() && scenario.plan_planner == "none") return {};
  if (std::ranges::adjacent_find(shares, std::ranges::greater_equal{}) != shares.end()) {
    return InvalidArgument("[plan] shares must ascend, without repeats");
  }
  if (const auto why = ExplainUnusableShare(Shares(scenario))) {
    return InvalidArgument("[plan] shares: " + *why);
  }
  if (!scenario.lane_kinds.empty() || scenario.slots > 1) {
    return InvalidArgument(
        "[plan] splits equal devices into lanes of one slot; leave out [[lane_kinds]] and slots, "
        "or [plan]");
  }
  return {};
}

}  // namespace

Status Validate(const Scenario& scenario) {
  if (scenario.models.empty()) return InvalidArgument("has no [[models]]; name at least one");
  if (scenario.warmup_s >= scenario.duration_s) {
    return InvalidArgument(fmt::format("warmup_s ({}) must be less than duration_s ({})",
                                       scenario.warmup_s, scenario.duration_s));
  }
  // What a profile holds; between them there is only a guess.
  constexpr std::array kPercentiles = {0.0, 50.0, 95.0, 99.0, 100.0};
  if (std::ranges::find(kPercentiles, scenario.percentile) == kPercentiles.end()) {
    return InvalidArgument(
        fmt::format("percentile {}: a profile holds 50, 95, 99, 100 (the maximum) and 0 (the mean)",
                    scenario.percentile));
  }
  if (auto chosen = ValidateAutoLanes(scenario); !chosen) return chosen;
  if (auto kinds = ValidateLaneKinds(scenario); !kinds) return kinds;
  if (auto pins = ValidatePins(scenario); !pins) return pins;
  if (auto faults = ValidateLaneFaults(scenario); !faults) return faults;
  if (auto drift = ValidateDrift(scenario); !drift) return drift;
  if (auto plan = ValidatePlan(scenario); !plan) return plan;
  if (scenario.scale_interval_s > 0) {
    if (scenario.scale_initial > scenario.lanes || scenario.scale_least > scenario.lanes) {
      return InvalidArgument(fmt::format(
          "[autoscale] starts with {} lanes and keeps {}; [lanes] count = {} is the most there are",
          scenario.scale_initial, scenario.scale_least, scenario.lanes));
    }
    if (scenario.idle_kept > scenario.idle_threshold) {
      return InvalidArgument(fmt::format("idle_kept ({}) must not exceed idle_threshold ({})",
                                         scenario.idle_kept, scenario.idle_threshold));
    }
  }
  if (!scenario.capacity.empty() && scenario.capacity.size() != kResources) {
    return InvalidArgument(
        fmt::format("[contention] capacity names {} resources; it must name all {}: l1, l2, dram, "
                    "tensor, fma",
                    scenario.capacity.size(), kResources));
  }
  if (scenario.process == ArrivalProcess::kTrace && scenario.trace.empty()) {
    return InvalidArgument("process = \"trace\" needs a file: trace = \"FILE\"");
  }
  if (scenario.process == ArrivalProcess::kClosed && !scenario.schedule.empty()) {
    return InvalidArgument(
        "process = \"closed\" has callers, no rate that a schedule could change; leave out "
        "schedule");
  }
  std::set<std::string_view> names;
  for (const ScenarioModel& model : scenario.models) {
    if (model.name.empty()) return InvalidArgument("a model has no name");
    if (!names.insert(model.name).second) {
      return InvalidArgument(
          fmt::format("model '{}' is there twice; give it another name and "
                      "profile_as = \"{}\"",
                      model.name, model.name));
    }
    if (!model.accuracy.empty() && !model.exits.empty() &&
        model.accuracy.size() != model.exits.size()) {
      return InvalidArgument(fmt::format("model '{}' names {} exits and {} accuracies", model.name,
                                         model.exits.size(), model.accuracy.size()));
    }
  }
  if (auto pipelines = ValidatePipelines(scenario); !pipelines) return pipelines;
  double total = 0;
  for (const double rate : Rates(scenario)) total += rate;
  // NaN when all shares are 0.
  if (!(total > 0)) return InvalidArgument("nothing would arrive: every rate is 0");
  return {};
}

}  // namespace tactus
