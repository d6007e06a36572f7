#include "dispatch/journal_json.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/request.h"

namespace tactus {
namespace {

using nlohmann::json;

constexpr std::array<const char*, 3> kExpiry = {"never", "passed", "unmeetable"};

// Bounds on what a file may make us allocate or compute with.
constexpr std::int64_t kMostLanes = 65'536;
constexpr std::int64_t kMostSlots = 1'024;
constexpr std::int64_t kMostBatch = 4'096;
constexpr std::int64_t kMostExits = 256;
constexpr std::int64_t kMostQueued = 1 << 24;
constexpr std::int64_t kMostModels = 1 << 20;
constexpr std::int64_t kMostClasses = 4'096;
constexpr std::int64_t kMostNanos = std::int64_t{1} << 56;  // two years

std::int64_t Whole(const json& object, const char* key, std::int64_t low, std::int64_t high) {
  const json& value = object.at(key);
  // A number above the range of int64 would be wrapped by get.
  const bool fits =
      value.is_number_integer() && !(value.is_number_unsigned() &&
                                     value.get<std::uint64_t>() > static_cast<std::uint64_t>(high));
  if (fits && value.get<std::int64_t>() >= low && value.get<std::int64_t>() <= high) {
    return value.get<std::int64_t>();
  }
  throw json::other_error::create(
      501, fmt::format("{} must be a whole number from {} to {}", key, low, high), &object);
}

// The library reports what it does not find by exceptions; they end here.
template <class Result, class Read>
Expected<Result> Parse(std::string_view text, Read read) {
  try {
    return read(json::parse(text));
  } catch (const json::exception& error) {
    return InvalidArgument(error.what());
  }
}

json LaneJson(const LaneSpec& lane) {
  json text = {{"device", lane.device.value()},
               {"lane_class", lane.lane_class.value()},
               {"fraction", lane.fraction},
               {"slots", lane.slots}};
  if (lane.serves.all()) return text;
  text["serves"] = json::array();
  for (const ModelId m : lane.serves.models()) text["serves"].push_back(m.value());
  return text;
}

// Not there: all models.
ModelSet ReadServes(const json& entry) {
  if (!entry.contains("serves")) return ModelSet::All();
  std::vector<ModelId> models;
  ModelId::rep most = 0;
  for (const json& each : entry.at("serves")) {
    const bool known = each.is_number_unsigned() && each.get<std::uint64_t>() <= kMostModels;
    if (!known) throw json::other_error::create(501, "serves names no model", &entry);
    models.emplace_back(each.get<ModelId::rep>());
    most = std::max(most, models.back().value());
  }
  ModelSet serves = ModelSet::None(std::size_t{most} + 1);
  for (const ModelId m : models) serves.Insert(m);
  return serves;
}

LaneClass ReadLaneClass(const json& entry) {
  return LaneClass{static_cast<LaneClass::rep>(Whole(entry, "lane_class", 0, kMostClasses - 1))};
}

double ReadFraction(const json& entry) {
  const auto fraction = entry.at("fraction").get<double>();
  if (fraction >= 0 && fraction <= 1) return fraction;
  throw json::other_error::create(501, "fraction must be a number from 0 to 1", &entry);
}

LaneSpec ReadLane(const json& entry) {
  return {.device = DeviceId{static_cast<DeviceId::rep>(Whole(entry, "device", 0, kMostLanes))},
          .lane_class = ReadLaneClass(entry),
          .fraction = ReadFraction(entry),
          .slots = static_cast<int>(Whole(entry, "slots", 1, kMostSlots)),
          .serves = ReadServes(entry)};
}

PlanEntry ReadPlanEntry(const json& entry) {
  return {.model = ModelId{static_cast<ModelId::rep>(Whole(entry, "model", 0, kMostModels))},
          .batch = static_cast<int>(Whole(entry, "batch", 1, kMostBatch)),
          .offset = Nanos(Whole(entry, "offset_ns", 0, kMostNanos)),
          .length = Nanos(Whole(entry, "length_ns", 0, kMostNanos))};
}

ProfileTable::ModelRows RowsOf(const ServedModels& served_models, std::size_t i) {
  const ProfileTable& table = served_models.profile;
  const ModelId m{static_cast<ModelId::rep>(i)};
  ProfileTable::ModelRows rows{
      .exits = table.exits(m), .max_batch = table.max_batch(m), .margin = table.margin(m)};
  for (int c = 0; c < table.lane_classes(); ++c) {
    for (int e = 0; e < rows.exits; ++e) {
      for (int b = 1; b <= rows.max_batch; ++b) {
        rows.latency.push_back(table.Latency(m, ExitId{static_cast<ExitId::rep>(e)}, b,
                                             LaneClass{static_cast<LaneClass::rep>(c)}));
        if (!table.knows_use(m)) continue;
        rows.use.push_back(table.Use(m, ExitId{static_cast<ExitId::rep>(e)}, b,
                                     LaneClass{static_cast<LaneClass::rep>(c)}));
      }
    }
  }
  return rows;
}

// [transfer_ns, throughput by resource] of each batch.
json UseJson(const std::vector<ResourceUse>& uses) {
  json rows = json::array();
  for (const ResourceUse& use : uses) {
    json row = {use.transfer.count()};
    for (const double share : use.throughput) row.push_back(share);
    rows.push_back(std::move(row));
  }
  return rows;
}

void ReadUse(const json& entry, ProfileTable::ModelRows& rows) {
  if (!entry.contains("use")) return;
  for (const json& row : entry.at("use")) {
    ResourceUse& use = rows.use.emplace_back();
    use.transfer = Nanos(row.at(0).get<std::int64_t>());
    for (std::size_t r = 0; r < kResources; ++r) use.throughput[r] = row.at(1 + r).get<double>();
    const bool sane = std::all_of(use.throughput.begin(), use.throughput.end(),
                                  [](double share) { return share >= 0 && share <= 1; });
    if (!sane || use.transfer < Duration{} || use.transfer > Nanos(kMostNanos)) {
      throw json::other_error::create(501, "what a batch uses is out of range", &entry);
    }
  }
  if (rows.use.size() != rows.latency.size()) {
    throw json::other_error::create(501, "what batches use does not match their latencies", &entry);
  }
}

Model ReadModel(const json& entry) {
  Model model;
  model.name = entry.at("name").get<std::string>();
  model.loaded = entry.at("loaded").get<bool>();
  // The slot of a model that is not loaded states nothing.
  model.slo = Nanos(Whole(entry, "slo_ns", model.loaded ? 1 : 0, kMostNanos));
  model.max_batch = static_cast<int>(Whole(entry, "max_batch", 0, kMostBatch));
  model.priority = static_cast<int>(Whole(entry, "priority", 0, kLowestPriority));
  for (const json& exit : entry.at("exits")) {
    model.exits.push_back({exit.at("name").get<std::string>(), exit.at("accuracy").get<double>()});
  }
  return model;
}

ProfileTable::ModelRows ReadRows(const json& entry, const Model& model, int lane_classes) {
  ProfileTable::ModelRows rows;
  rows.exits = static_cast<int>(Whole(entry, "profile_exits", 0, kMostExits));
  rows.max_batch = static_cast<int>(Whole(entry, "profile_max_batch", 0, kMostBatch));
  for (const json& latency : entry.at("latency_ns")) {
    const auto ns = latency.is_number_integer() ? latency.get<std::int64_t>() : -1;
    if (ns < 0 || ns > kMostNanos) {
      throw json::other_error::create(501, "a latency is no number of nanoseconds", &entry);
    }
    rows.latency.push_back(Nanos(ns));
  }
  const auto wanted = static_cast<std::size_t>(lane_classes) * rows.exits * rows.max_batch;
  const bool covers = !model.loaded || (rows.exits == model.exit_count() && rows.exits > 0 &&
                                        model.max_batch > 0 && model.max_batch <= rows.max_batch);
  if (rows.latency.size() != wanted || !covers) {
    throw json::other_error::create(
        501,
        fmt::format("the profile of model '{}' does not cover its exits and batches", model.name),
        &entry);
  }
  if (entry.contains("margin_ns")) rows.margin = Nanos(Whole(entry, "margin_ns", 0, kMostNanos));
  ReadUse(entry, rows);
  return rows;
}

json FollowJson(const FollowOptions& follow) {
  if (!follow.on) return nullptr;
  return {{"percentile", follow.percentile},
          {"stalls", follow.stalls},
          {"margin_ns", follow.margin.count()}};
}

FollowOptions ReadFollow(const json& root) {
  FollowOptions follow;
  if (!root.contains("follow") || root.at("follow").is_null()) return follow;
  const json& entry = root.at("follow");
  follow.on = true;
  follow.percentile = entry.at("percentile").get<double>();
  follow.stalls = entry.at("stalls").get<bool>();
  follow.margin = Nanos(Whole(entry, "margin_ns", 0, kMostNanos));
  if (follow.percentile >= 0 && follow.percentile <= 100) return follow;
  throw json::other_error::create(501, "follow's percentile is none", &root);
}

}  // namespace

std::string ToJson(const JournalHeader& header) {
  json lanes = json::array();
  for (const LaneSpec& lane : header.lanes) {
    lanes.push_back(LaneJson(lane));
  }
  const json text = {{"policy", header.policy},
                     {"source", header.source},
                     {"commit", header.commit},
                     {"queue_capacity", header.options.queue_capacity},
                     {"expiry", kExpiry[static_cast<std::size_t>(header.options.expiry)]},
                     {"follow", FollowJson(header.options.follow)},
                     {"lanes", lanes}};
  return text.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string ToJson(const ServedModels& served_models) {
  json models = json::array();
  for (std::size_t i = 0; i < served_models.models.size(); ++i) {
    const Model& model = served_models.models[i];
    json exits = json::array();
    for (const ModelExit& exit : model.exits) {
      exits.push_back({{"name", exit.name}, {"accuracy", exit.accuracy}});
    }
    const ProfileTable::ModelRows rows = RowsOf(served_models, i);
    json latency = json::array();
    for (const Duration l : rows.latency) latency.push_back(l.count());
    models.push_back({{"name", model.name},
                      {"slo_ns", model.slo.count()},
                      {"max_batch", model.max_batch},
                      {"priority", model.priority},
                      {"loaded", model.loaded},
                      {"exits", exits},
                      {"profile_exits", rows.exits},
                      {"profile_max_batch", rows.max_batch},
                      {"latency_ns", latency}});
    if (!rows.use.empty()) models.back()["use"] = UseJson(rows.use);
    if (rows.margin > Duration{}) models.back()["margin_ns"] = rows.margin.count();
  }
  const json text = {{"lane_classes", served_models.profile.lane_classes()}, {"models", models}};
  return text.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string ToJson(const Plan* plan) {
  if (plan == nullptr) return json(nullptr).dump();
  json lanes = json::array();
  for (const LanePlan& lane : plan->lanes) {
    json entries = json::array();
    for (const PlanEntry& entry : lane.entries) {
      entries.push_back({{"model", entry.model.value()},
                         {"batch", entry.batch},
                         {"offset_ns", entry.offset.count()},
                         {"length_ns", entry.length.count()}});
    }
    lanes.push_back(LaneJson(lane.spec));
    lanes.back()["cycle_ns"] = lane.cycle.count();
    lanes.back()["entries"] = std::move(entries);
  }
  return json({{"epoch", plan->epoch}, {"lanes", lanes}}).dump();
}

std::string ToJson(const LaneShare& share) {
  return json({{"lane", share.lane.value()},
               {"lane_class", share.lane_class.value()},
               {"fraction", share.fraction}})
      .dump();
}

Expected<JournalHeader> ParseJournalHeader(std::string_view text) {
  return Parse<JournalHeader>(text, [](const json& root) {
    JournalHeader header;
    header.policy = root.at("policy").get<std::string>();
    header.source = root.at("source").get<std::string>();
    header.commit = root.at("commit").get<std::string>();
    header.options.queue_capacity = Whole(root, "queue_capacity", 1, kMostQueued);
    const auto expiry = root.at("expiry").get<std::string>();
    const auto known = std::find(kExpiry.begin(), kExpiry.end(), expiry);
    if (known == kExpiry.end()) {
      throw json::other_error::create(501, "expiry must be never, passed or unmeetable", &root);
    }
    header.options.expiry = static_cast<Expiry>(known - kExpiry.begin());
    header.options.follow = ReadFollow(root);
    for (const json& entry : root.at("lanes")) {
      header.lanes.push_back(ReadLane(entry));
    }
    if (header.lanes.empty() || header.lanes.size() > kMostLanes) {
      throw json::other_error::create(501, "there is no lane, or there are too many", &root);
    }
    return header;
  });
}

Expected<std::shared_ptr<const ServedModels>> ParseServedModels(std::string_view text,
                                                                std::size_t lane_classes,
                                                                std::size_t known) {
  using Result = std::shared_ptr<const ServedModels>;
  return Parse<Result>(text, [&](const json& root) -> Result {
    auto served_models = std::make_shared<ServedModels>();
    std::vector<ProfileTable::ModelRows> rows;
    const auto classes = static_cast<int>(Whole(root, "lane_classes", 0, kMostClasses));
    for (const json& entry : root.at("models")) {
      served_models->models.push_back(ReadModel(entry));
      rows.push_back(ReadRows(entry, served_models->models.back(), classes));
    }
    if (static_cast<std::size_t>(classes) < lane_classes && !rows.empty()) {
      throw json::other_error::create(501, "a lane's class is not in the profile", &root);
    }
    if (served_models->models.size() < known) {
      throw json::other_error::create(501, "a model has vanished", &root);
    }
    served_models->profile = ProfileTable(classes, rows);
    return served_models;
  });
}

Expected<std::shared_ptr<const Plan>> ParsePlan(std::string_view text) {
  using Result = std::shared_ptr<const Plan>;
  return Parse<Result>(text, [](const json& root) -> Result {
    if (root.is_null()) return nullptr;
    auto plan = std::make_shared<Plan>();
    plan->epoch = root.at("epoch").get<std::uint64_t>();
    for (const json& entry : root.at("lanes")) {
      LanePlan& lane = plan->lanes.emplace_back();
      lane.spec = ReadLane(entry);
      lane.cycle = Nanos(Whole(entry, "cycle_ns", 0, kMostNanos));
      for (const json& each : entry.at("entries")) lane.entries.push_back(ReadPlanEntry(each));
    }
    return plan;
  });
}

Expected<LaneShare> ParseLaneShare(std::string_view text, std::size_t lanes) {
  return Parse<LaneShare>(text, [&](const json& root) {
    const auto last = static_cast<std::int64_t>(lanes) - 1;
    return LaneShare{.lane = LaneId{static_cast<LaneId::rep>(Whole(root, "lane", 0, last))},
                     .lane_class = ReadLaneClass(root),
                     .fraction = ReadFraction(root)};
  });
}

}  // namespace tactus
