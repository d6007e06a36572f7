#include "workload/plan_file.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "workload/json_reader.h"
#include "workload/model_names.h"
#include "workload/whole_file.h"

namespace tactus {
namespace {

constexpr const char* kRemedy = "; write one anew with `tactus plan gpulet --out`";
constexpr int kMostDevices = 1 << 16;
constexpr int kMostBatch = 1 << 16;
constexpr double kMostMillis = 1e9;  // as nanoseconds they leave room for sums

using Ids = std::map<std::string, ModelId>;

Duration Millis(const JsonReader& node, const char* key) {
  const double ms = node.Number(key, 0);
  if (ms > kMostMillis) node.Complain(key, "is more than 11 days");
  return FromMillis(std::min(ms, kMostMillis));
}

PlanEntry ReadEntry(const JsonReader& node, const Ids& ids) {
  PlanEntry entry;
  const std::string name = node.Text("model");
  const auto found = ids.find(name);
  if (found == ids.end()) {
    node.Complain("model", "'" + name + "' is not among the plan's models");
  } else {
    entry.model = found->second;
  }
  entry.batch = static_cast<int>(node.Integer("batch", 1, kMostBatch));
  entry.offset = Millis(node, "offset_ms");
  entry.length = Millis(node, "length_ms");
  return entry;
}

LanePlan ReadLane(const JsonReader& node, const Ids& ids) {
  LanePlan lane;
  lane.spec.device =
      DeviceId{static_cast<DeviceId::rep>(node.Integer("device", 0, kMostDevices - 1))};
  lane.spec.fraction = node.Number("share", 0);
  if (!(lane.spec.fraction > 0 && lane.spec.fraction <= 1)) {
    node.Complain("share", "must be above 0 and at most 1, all of the device");
  }
  lane.cycle = Millis(node, "cycle_ms");
  if (lane.cycle <= Duration{}) node.Complain("cycle_ms", "must be above 0");
  node.Each("entries",
            [&](const JsonReader& entry) { lane.entries.push_back(ReadEntry(entry, ids)); });
  return lane;
}

PlanFile Read(const JsonReader& root) {
  PlanFile file;
  root.Integer("tactus_plan", 1, 1);
  file.planner = root.Text("planner", true);
  file.scenario = root.Text("scenario", true);
  file.profile = root.Text("profile", true);
  Ids ids;
  root.Each("models", [&](const JsonReader& model) {
    const ModelId id{static_cast<ModelId::rep>(file.models.size())};
    file.models.push_back(
        {model.Text("name"), Millis(model, "slo_ms"), model.Number("rate_rps", 0)});
    if (!ids.emplace(file.models.back().name, id).second) model.Complain("name", "is there twice");
  });
  root.Each("lanes",
            [&](const JsonReader& lane) { file.plan.lanes.push_back(ReadLane(lane, ids)); });
  return file;
}

// The class with that share; one that there is not where there is none, which Validate names.
LaneClass ClassOf(double share, const PlanInput& input) {
  LaneClass::rep c = 0;
  while (c < input.shares.size() && std::abs(input.shares[c] - share) > 1e-6) ++c;
  return LaneClass{c};
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
  const auto document = ParseJson(text, where, kRemedy);
  if (!document) return std::unexpected(document.error());
  std::string problem;
  PlanFile file = Read(JsonReader(*document, problem));
  if (!problem.empty()) return InvalidArgument(fmt::format("{}: {}{}", where, problem, kRemedy));
  return file;
}

std::string PlanText(const PlanFile& file) {
  nlohmann::ordered_json document = {{"tactus_plan", 1},
                                     {"planner", file.planner},
                                     {"scenario", file.scenario},
                                     {"profile", file.profile}};
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
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  if (!in || !(text << in.rdbuf())) {
    return NotFound(fmt::format("{}: cannot read this plan{}", path.string(), kRemedy));
  }
  return ParsePlan(text.str(), path.string());
}

Status SavePlan(const PlanFile& file, const std::filesystem::path& path) {
  return WriteWhole(PlanText(file), path, "this plan");
}

Expected<Plan> FitPlan(const PlanFile& file, std::string_view where, const PlanInput& input) {
  std::vector<std::string> known;
  std::vector<std::string> here;
  for (const PlanFile::PlannedFor& model : file.models) known.push_back(model.name);
  for (const PlannedModel& model : input.models) here.push_back(model.name);
  if (const std::string other = HowNamesDiffer(known, here); !other.empty()) {
    return InvalidArgument(
        fmt::format("{}: a plan of another model set: {}{}", where, other, kRemedy));
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
                    model.name, model.rate_rps, kRemedy));
  }
  PlanInput at_rest = input;
  for (PlannedModel& model : at_rest.models) model.rate_rps = 0;
  if (const auto fits = Validate(plan, at_rest); !fits) {
    return InvalidArgument(fmt::format("{}: {}", where, fits.error().message));
  }
  return plan;
}

}  // namespace tactus
