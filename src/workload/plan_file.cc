#include "workload/plan_file.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/whole_file.h"
#include "core/shares.h"
#include "workload/json_reader.h"
#include "workload/model_names.h"

namespace tactus {
namespace {

constexpr const char* kPlanAnew = "; make a new one with `tactus plan gpulet --out`";
constexpr int kMostDevices = 1 << 16;
constexpr int kLargestPlanned = 1 << 16;
constexpr double kMostExponent = 4;                          // as of a scenario's
constexpr double kSame = 1e-6;                               // shares that differ by less are equal
constexpr Duration kSameSlo = std::chrono::microseconds(1);  // the file has decimals of it
constexpr double kMoreLoad = 1.01;  // than the plan's, from which on it is pointed out

using Ids = std::map<std::string, ModelId>;

PlanEntry ReadEntry(const JsonReader& node, const Ids& ids) {
  node.Only({"model", "batch", "offset_ms", "length_ms"});
  PlanEntry entry;
  const std::string name = node.Text("model");
  const auto found = ids.find(name);
  if (found == ids.end()) {
    node.Complain("model", "'" + name + "' is not among the plan's models");
  } else {
    entry.model = found->second;
  }
  entry.batch = static_cast<int>(node.Integer("batch", 1, kLargestPlanned));
  entry.offset = node.Time("offset_ms");
  entry.length = node.Time("length_ms");
  return entry;
}

LanePlan ReadLane(const JsonReader& node, const Ids& ids) {
  node.Only({"device", "share", "cycle_ms", "entries"});
  LanePlan lane;
  lane.spec.device =
      DeviceId{static_cast<DeviceId::rep>(node.Integer("device", 0, kMostDevices - 1))};
  lane.spec.fraction = node.Number("share", 0);
  if (!(lane.spec.fraction > 0 && lane.spec.fraction <= 1)) {
    const double percent = lane.spec.fraction;
    node.Complain("share", "must be above 0 and at most 1, all of the device" +
                               (percent > 1 && percent <= 100
                                    ? fmt::format("; write {:g} for {:g} %", percent / 100, percent)
                                    : std::string()));
  }
  lane.cycle = node.Time("cycle_ms");
  if (lane.cycle <= Duration{}) node.Complain("cycle_ms", "must be above 0");
  node.Each("entries",
            [&](const JsonReader& entry) { lane.entries.push_back(ReadEntry(entry, ids)); });
  return lane;
}

// The parts of a device that the plan was made for; its lanes are of these.
void ReadShares(const JsonReader& root, PlanFile& file) {
  file.shares = root.Numbers("shares", 0);
  double before = 0;
  for (const double percent : file.shares) {
    if (percent > before && percent < 100) {
      before = percent;
      continue;
    }
    return root.Complain("shares", "must ascend, in percent of a device, between 0 and 100");
  }
  file.exponent = root.Number("exponent", 0, file.exponent);
  if (file.exponent > kMostExponent) {
    root.Complain("exponent", fmt::format("must be at most {}", kMostExponent));
  }
  if (root.Has("utilization_base")) file.utilization_base = root.Text("utilization_base");
  if (file.utilization_base != "largest-batch" && file.utilization_base != "device") {
    root.Complain("utilization_base", "must be \"largest-batch\" or \"device\"");
  }
  for (const char* key : {"exponent", "utilization_base"}) {
    if (root.Has(key) && file.shares.empty()) root.Complain(key, "needs shares");
  }
  std::vector<double> known = file.shares;
  if (root.Has("on_share")) {
    root.Each("on_share", [&](const JsonReader& each) {
      each.Only({"percent", "profile"});
      file.on_share.push_back({each.Number("percent", 0), each.Text("profile")});
      const double percent = file.on_share.back().percent;
      if (!(percent > 0 && percent <= 100)) {
        each.Complain("percent", "must be above 0 and at most 100, all of the device");
      }
      known.push_back(file.on_share.back().percent);
    });
    if (!file.shares.empty()) root.Complain("on_share", "is beside shares; leave one of them out");
  }
  for (std::size_t i = 0; i < file.plan.lanes.size() && !known.empty(); ++i) {
    const double share = file.plan.lanes[i].spec.fraction;
    const auto is_it = [&](double percent) { return std::abs(percent / 100 - share) <= kSame; };
    if (share == 1 || std::ranges::any_of(known, is_it)) continue;
    root.Complain("lanes",
                  fmt::format("lane {} has {:g} % of its device, which is not among {}; add it "
                              "there, and its complement",
                              i, 100 * share, file.on_share.empty() ? "shares" : "on_share"));
  }
}

PlanFile ReadPlan(const JsonReader& root) {
  root.Only({"tactus_plan", "planner", "scenario", "profile", "shares", "exponent",
             "utilization_base", "on_share", "models", "lanes"});
  PlanFile file;
  root.Integer("tactus_plan", 1, 1);
  file.planner = root.Text("planner", true);
  file.scenario = root.Text("scenario", true);
  file.profile = root.Text("profile", true);
  Ids ids;
  root.Each("models", [&](const JsonReader& model) {
    model.Only({"name", "slo_ms", "rate_rps"});
    const ModelId id{static_cast<ModelId::rep>(file.models.size())};
    file.models.push_back({model.Text("name"), model.Time("slo_ms"), model.Number("rate_rps", 0)});
    if (!ids.emplace(file.models.back().name, id).second) model.Complain("name", "is there twice");
  });
  root.Each("lanes",
            [&](const JsonReader& lane) { file.plan.lanes.push_back(ReadLane(lane, ids)); });
  ReadShares(root, file);
  return file;
}

// The class with that share; one that there is not where there is none, which Validate names.
LaneClass ClassOf(double share, const PlanInput& input) {
  LaneClass::rep c = 0;
  while (c < input.shares.size() && std::abs(input.shares[c] - share) > kSame) ++c;
  return LaneClass{c};
}

// The file's path from the plan's folder on where it lies there or below, else all of it.
std::filesystem::path FromBeside(const std::filesystem::path& plan,
                                 const std::filesystem::path& file) {
  const auto full = [](const std::filesystem::path& path) {
    return std::filesystem::absolute(path).lexically_normal();
  };
  const std::filesystem::path from_there = full(file).lexically_relative(full(plan).parent_path());
  return from_there.empty() || *from_there.begin() == ".." ? full(file) : from_there;
}

// Lanes without entries are nobody's.
Status CheckLanes(const Plan& plan, const DeviceLimits& device) {
  std::map<DeviceId, int> lanes;
  for (const LanePlan& lane : plan.lanes) {
    if (lane.entries.empty() || ++lanes[lane.spec.device] <= device.most_lanes) continue;
    return InvalidArgument(fmt::format(
        "more than {} lanes on device {}, which is split in {} at most; put their models "
        "into fewer, larger ones",
        device.most_lanes, lane.spec.device.value(),
        device.most_lanes == 2 ? "two" : std::to_string(device.most_lanes)));
  }
  return {};
}

}  // namespace

PlanFile MakePlanFile(const Plan& plan, const PlanInput& input) {
  PlanFile file{.plan = plan};
  for (LanePlan& lane : file.plan.lanes) lane.spec.lane_class = LaneClass{0};
  for (const PlannedModel& model : input.models) {
    file.models.push_back({model.name, model.slo, model.rate_rps});
  }
  file.plan.epoch = 0;
  return file;
}

Expected<PlanFile> ParsePlan(std::string_view text, std::string_view where) {
  return ReadJson(text, where, kPlanAnew, ReadPlan);
}

std::string PlanText(const PlanFile& file) {
  nlohmann::ordered_json document = {{"tactus_plan", 1},
                                     {"planner", file.planner},
                                     {"scenario", file.scenario},
                                     {"profile", file.profile}};
  if (!file.shares.empty()) {
    document["shares"] = file.shares;
    document["exponent"] = file.exponent;
    document["utilization_base"] = file.utilization_base;
  }
  for (const MeasuredShare& each : file.on_share) {
    document["on_share"].push_back({{"percent", each.percent}, {"profile", each.profile.string()}});
  }
  document["models"] = nlohmann::json::array();
  for (const PlanFile::PlannedFor& model : file.models) {
    document["models"].push_back(
        {{"name", model.name}, {"slo_ms", ToMillis(model.slo)}, {"rate_rps", model.rate_rps}});
  }
  document["lanes"] = nlohmann::json::array();
  for (const LanePlan& lane : file.plan.lanes) {
    nlohmann::ordered_json entries = nlohmann::json::array();
    for (const PlanEntry& entry : lane.entries) {
      entries.push_back({{"model", file.models[entry.model.value()].name},
                         {"batch", entry.batch},
                         {"offset_ms", ToMillis(entry.offset)},
                         {"length_ms", ToMillis(entry.length)}});
    }
    document["lanes"].push_back({{"device", lane.spec.device.value()},
                                 {"share", lane.spec.fraction},
                                 {"cycle_ms", ToMillis(lane.cycle)},
                                 {"entries", std::move(entries)}});
  }
  // A model's name may hold bytes that are no UTF-8.
  return document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Expected<PlanFile> LoadPlan(const std::filesystem::path& path) {
  const auto text = ReadWhole(path, "plan", kPlanAnew);
  if (!text) return std::unexpected(text.error());
  auto file = ParsePlan(*text, path.string());
  if (!file) return file;
  for (MeasuredShare& each : file->on_share) each.profile = path.parent_path() / each.profile;
  return file;
}

Status SavePlan(const PlanFile& file, const std::filesystem::path& path) {
  PlanFile written = file;
  for (MeasuredShare& each : written.on_share) each.profile = FromBeside(path, each.profile);
  return WriteWhole(PlanText(written), path, "plan");
}

Expected<Plan> FitPlan(const PlanFile& file, std::string_view where, const PlanInput& input) {
  std::vector<std::string> known;
  std::vector<std::string> here;
  for (const PlanFile::PlannedFor& model : file.models) known.push_back(model.name);
  for (const PlannedModel& model : input.models) here.push_back(model.name);
  if (const std::string other = HowNamesDiffer(known, here); !other.empty()) {
    return InvalidArgument(
        fmt::format("{}: a plan of another model set: {}{}", where, other, kPlanAnew));
  }
  Plan plan = file.plan;
  for (LanePlan& lane : plan.lanes) {
    lane.spec.lane_class = ClassOf(lane.spec.fraction, input);
    for (PlanEntry& entry : lane.entries) {
      const auto found = std::ranges::find(here, known[entry.model.value()]);
      entry.model = ModelId{static_cast<ModelId::rep>(found - here.begin())};
    }
  }
  for (ModelId::rep m = 0; m < file.models.size(); ++m) {
    const auto has_it = [&](const LanePlan& lane) {
      return std::ranges::find(lane.entries, ModelId{m}, &PlanEntry::model) != lane.entries.end();
    };
    const PlanFile::PlannedFor& model = file.models[m];
    if (model.rate_rps <= 0 || std::ranges::any_of(file.plan.lanes, has_it)) continue;
    return InvalidArgument(
        fmt::format("{}: model '{}' is planned for {:g} requests/s and has no lane{}", where,
                    model.name, model.rate_rps, kPlanAnew));
  }
  if (const auto few = CheckLanes(plan, input.device); !few) {
    return InvalidArgument(fmt::format("{}: {}", where, few.error().message));
  }
  if (const auto fits = ValidateLanes(plan, input); !fits) {
    return InvalidArgument(fmt::format("{}: {}", where, fits.error().message));
  }
  return plan;
}

std::optional<std::string> ExplainPlanMismatch(const PlanFile& file, const PlanInput& input,
                                               KnownRates rates) {
  std::vector<std::string> loads;
  std::vector<std::string> slos;
  for (const PlannedModel& here : input.models) {
    const auto planned = std::ranges::find(file.models, here.name, &PlanFile::PlannedFor::name);
    if (planned == file.models.end()) continue;
    if (rates == KnownRates::kYes && here.rate_rps > kMoreLoad * planned->rate_rps) {
      loads.push_back(fmt::format("planned for {:.6g} requests/s of '{}', here come {:.6g}",
                                  planned->rate_rps, here.name, here.rate_rps));
    }
    const Duration apart = here.slo - planned->slo;
    if (apart > kSameSlo || apart < -kSameSlo) {
      slos.push_back(fmt::format("planned for an SLO of {:.6g} ms of '{}', here it is {:.6g}",
                                 ToMillis(planned->slo), here.name, ToMillis(here.slo)));
    }
  }
  std::string text;
  for (const std::vector<std::string>* each : {&loads, &slos}) {
    if (each->empty()) continue;
    text += (text.empty() ? "" : "; ") + each->front();
    if (each->size() > 1) text += fmt::format(" (and {} more)", each->size() - 1);
  }
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

}  // namespace tactus
