#include "workload/fleet_file.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "base/whole_file.h"
#include "workload/fleet_scenario.h"
#include "workload/fleet_traces.h"

namespace tactus {
namespace {

constexpr double kMost = 1e9;

constexpr std::string_view kExample = "; scenarios/fleets/testbed.toml is an example";

// What a file says: the fleet, how it is run, and where its numbers over time come from, each by
// the name that its table gives.
struct FleetText {
  FleetInput input;
  FleetRun run;
  std::vector<std::string> link_traces;               // by link
  std::vector<std::vector<std::string>> stage_items;  // by pipeline, stage
};

// Reads one table; the first mistake is kept, and reading goes on with defaults.
class Table {
 public:
  Table(const toml::table& table, std::string name, const std::filesystem::path& where,
        std::string& problem)
      : table_(table), name_(std::move(name)), where_(where), problem_(problem) {}

  void Only(std::initializer_list<const char*> keys) {
    for (const auto& [key, value] : table_) {
      if (std::ranges::any_of(keys, [&](const char* each) { return key.str() == each; })) continue;
      std::string known;
      for (const char* each : keys) known += (known.empty() ? "" : ", ") + std::string(each);
      Complain(value, fmt::format("{}: unknown in {}; it may hold {}", key.str(), name_, known));
    }
  }
  std::string Text(const char* key, bool required = true) {
    const toml::node* node = Get(key, required);
    if (node == nullptr) return "";
    if (const auto* text = node->as_string()) return text->get();
    Complain(*node, fmt::format("{}: must be a text", key));
    return "";
  }
  double Number(const char* key, double low, std::optional<double> otherwise = {}) {
    const toml::node* node = Get(key, !otherwise);
    return node == nullptr ? otherwise.value_or(0) : NumberIn(*node, key, low);
  }
  bool Flag(const char* key) {
    const toml::node* node = Get(key, false);
    if (node == nullptr) return false;
    if (const auto* flag = node->as_boolean()) return flag->get();
    Complain(*node, fmt::format("{}: must be true or false", key));
    return false;
  }
  std::vector<double> Numbers(const char* key, double low, bool required, std::size_t count) {
    std::vector<double> numbers;
    const toml::node* node = Get(key, required);
    if (node == nullptr) return std::vector<double>(count);
    if (const auto* array = node->as_array()) {
      for (const toml::node& each : *array) numbers.push_back(NumberIn(each, key, low));
    }
    if (numbers.empty() || (count > 0 && numbers.size() != count)) {
      Complain(*node, fmt::format("{}: must be a list of {}numbers", key,
                                  count > 0 ? fmt::format("{} ", count) : ""));
      numbers.resize(std::max<std::size_t>(count, 1));
    }
    return numbers;
  }
  std::vector<std::string> Texts(const char* key, bool required) {
    std::vector<std::string> texts;
    const toml::node* node = Get(key, required);
    if (node == nullptr) return texts;
    const auto* array = node->as_array();
    for (std::size_t i = 0; array != nullptr && i < array->size(); ++i) {
      if (const auto* text = (*array)[i].as_string()) texts.push_back(text->get());
    }
    if (array == nullptr || texts.size() != array->size()) {
      Complain(*node, fmt::format("{}: must be a list of texts", key));
    }
    return texts;
  }
  // The tables of an array; a mistake where it is anything else.
  template <class Each>
  void Tables(const char* key, const std::string& name, bool required, Each each) {
    const toml::node* node = Get(key, required);
    if (node == nullptr) return;
    const auto* array = node->as_array();
    if (array == nullptr) return Complain(*node, fmt::format("write it as [[{}]]", name));
    for (const toml::node& entry : *array) {
      const auto* table = entry.as_table();
      if (table == nullptr) return Complain(entry, fmt::format("write it as [[{}]]", name));
      Table one(*table, fmt::format("[[{}]]", name), where_, problem_);
      each(one);
    }
  }
  // The table of that name, if there is one.
  template <class Each>
  void One(const char* key, Each each) {
    const toml::node* node = Get(key, false);
    if (node == nullptr) return;
    const auto* table = node->as_table();
    if (table == nullptr) return Complain(*node, fmt::format("write it as [{}]", key));
    Table one(*table, fmt::format("[{}]", key), where_, problem_);
    each(one);
  }
  void Complain(const std::string& what) { Complain(table_, what); }

 private:
  const toml::node* Get(const char* key, bool required) {
    const toml::node* node = table_.get(key);
    if (node == nullptr && required) Complain(table_, fmt::format("{} needs {}", name_, key));
    return node;
  }
  double NumberIn(const toml::node& node, const char* key, double low) {
    const auto number = node.value<double>();
    if (number && std::isfinite(*number) && *number >= low && *number <= kMost) return *number;
    Complain(node, fmt::format("{}: must be a number from {:g} to {:g}", key, low, kMost));
    return low;
  }
  void Complain(const toml::node& node, const std::string& what) {
    if (!problem_.empty()) return;
    const toml::source_position& at = node.source().begin;
    problem_ = at.line == 0  // it stands in no file
                   ? fmt::format("a setting of {}: {}", where_.string(), what)
                   : fmt::format("{}:{}:{}: {}", where_.string(), at.line, at.column, what);
  }

  const toml::table& table_;
  const std::string name_;
  const std::filesystem::path& where_;
  std::string& problem_;
};

// The place of the name in the list; a new one is added to it.
template <class AnyId>
AnyId IdOf(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  const auto place = static_cast<typename AnyId::rep>(found - names.begin());
  if (found == names.end()) names.push_back(name);
  return AnyId{place};
}

void ReadDevice(Table& table, FleetInput& input) {
  table.Only(
      {"name", "kind", "site", "accelerators", "streams", "memory_mb", "most_use", "server"});
  FleetDevice device;
  device.name = table.Text("name");
  device.kind = IdOf<KindId>(input.kinds, table.Text("kind"));
  device.site = IdOf<SiteId>(input.sites, table.Text("site"));
  device.accelerators = static_cast<int>(std::min(1e4, table.Number("accelerators", 1, 1)));
  device.streams = static_cast<int>(std::min(1e3, table.Number("streams", 1, 1)));
  device.memory_mb = table.Number("memory_mb", 0);
  device.most_use = table.Number("most_use", 0, 1);
  device.server = table.Flag("server");
  input.devices.push_back(std::move(device));
}

void ReadLink(Table& table, FleetText& text) {
  FleetInput& input = text.input;
  table.Only({"sites", "mbps", "rtt_ms", "loss", "trace"});
  const std::vector<std::string> sites = table.Texts("sites", true);
  if (sites.size() != 2) return table.Complain("sites: a link joins two, sites = [\"a\", \"b\"]");
  for (const std::string& site : sites) {
    if (std::ranges::find(input.sites, site) != input.sites.end()) continue;
    return table.Complain(fmt::format("sites: no device is at '{}'", site));
  }
  input.links.push_back({.a = IdOf<SiteId>(input.sites, sites[0]),
                         .b = IdOf<SiteId>(input.sites, sites[1]),
                         .mbps = table.Number("mbps", 0),
                         .rtt = FromMillis(table.Number("rtt_ms", 0, 0)),
                         .loss = table.Number("loss", 0, 0)});
  text.link_traces.push_back(table.Text("trace", false));
}

void ReadCost(Table& table, FleetInput& input) {
  table.Only({"model", "kind", "weights_mb", "batches", "infer_ms", "pre_ms", "post_ms", "peak_mb",
              "use"});
  FleetCost cost;
  cost.model = IdOf<ModelId>(input.models, table.Text("model"));
  cost.kind = IdOf<KindId>(input.kinds, table.Text("kind"));
  cost.weights_mb = table.Number("weights_mb", 0, 0);
  const std::vector<double> batches = table.Numbers("batches", 1, true, 0);
  const std::size_t count = batches.size();
  const auto infer = table.Numbers("infer_ms", 0, true, count);
  const auto pre = table.Numbers("pre_ms", 0, false, count);
  const auto post = table.Numbers("post_ms", 0, false, count);
  const auto peak = table.Numbers("peak_mb", 0, false, count);
  const auto use = table.Numbers("use", 0, false, count);
  for (std::size_t i = 0; i < count; ++i) {
    cost.batches.push_back({.batch = static_cast<int>(std::min(batches[i], 1e6)),
                            .pre = FromMillis(pre[i]),
                            .infer = FromMillis(infer[i]),
                            .post = FromMillis(post[i]),
                            .peak_mb = peak[i],
                            .use = use[i]});
  }
  input.costs.push_back(std::move(cost));
}

void ReadStage(Table& table, FleetText& text, FleetPipeline& pipeline) {
  FleetInput& input = text.input;
  table.Only({"name", "model", "after", "items", "items_from", "cv", "in_kb", "out_kb"});
  FleetStage stage;
  stage.name = table.Text("name");
  const std::string model = table.Text("model", false);
  stage.model = IdOf<ModelId>(input.models, model.empty() ? stage.name : model);
  for (const std::string& name : table.Texts("after", false)) {
    const auto before = std::ranges::find(pipeline.stages, name, &FleetStage::name);
    if (before == pipeline.stages.end()) {
      return table.Complain(fmt::format("after: no earlier stage is called '{}'", name));
    }
    stage.after.push_back(
        FleetStageId{static_cast<FleetStageId::rep>(before - pipeline.stages.begin())});
  }
  stage.items = table.Number("items", 0, 1);
  stage.cv = table.Number("cv", -1, -1);
  stage.in_kb = table.Number("in_kb", 0, 0);
  stage.out_kb = table.Number("out_kb", 0, 0);
  text.stage_items.back().push_back(table.Text("items_from", false));
  pipeline.stages.push_back(std::move(stage));
}

void ReadPipeline(Table& table, FleetText& text) {
  FleetInput& input = text.input;
  text.stage_items.emplace_back();
  table.Only({"name", "slo_ms", "source", "rate_rps", "stages"});
  FleetPipeline pipeline;
  pipeline.name = table.Text("name");
  pipeline.slo = FromMillis(table.Number("slo_ms", 0));
  pipeline.rate_rps = table.Number("rate_rps", 0);
  const std::string source = table.Text("source");
  const auto device = std::ranges::find(input.devices, source, &FleetDevice::name);
  if (device == input.devices.end()) {
    return table.Complain(fmt::format("source: no device is called '{}'", source));
  }
  pipeline.source = DeviceId{static_cast<DeviceId::rep>(device - input.devices.begin())};
  table.Tables("stages", "pipelines.stages", true,
               [&](Table& stage) { ReadStage(stage, text, pipeline); });
  input.pipelines.push_back(std::move(pipeline));
}

void ReadRun(Table& table, FleetRun& run) {
  table.Only({"duration_s", "seed", "planner", "policy", "server_policy", "period_s", "links_s",
              "autoscale_s", "report_s", "load_s", "latency_scale", "load_scale", "slo_less_ms",
              "crosstalk", "spread", "traces", "counts", "curve", "exits"});
  const auto text = [&](const char* key, std::string& into) {
    if (std::string said = table.Text(key, false); !said.empty()) into = std::move(said);
  };
  run.duration_s = table.Number("duration_s", 0.001, run.duration_s);
  run.seed = static_cast<std::uint64_t>(table.Number("seed", 0, static_cast<double>(run.seed)));
  text("planner", run.planner);
  text("policy", run.policy);
  text("server_policy", run.server_policy);
  run.period_s = table.Number("period_s", 0, run.period_s);
  run.links_s = table.Number("links_s", 0, run.links_s);
  run.autoscale_s = table.Number("autoscale_s", 0, run.autoscale_s);
  run.report_s = table.Number("report_s", 0, run.report_s);
  run.load_s = table.Number("load_s", 0, run.load_s);
  run.latency_scale = table.Number("latency_scale", 1e-6, run.latency_scale);
  run.load_scale = table.Number("load_scale", 0, run.load_scale);
  run.slo_less_ms = table.Number("slo_less_ms", 0, run.slo_less_ms);
  run.crosstalk = table.Number("crosstalk", 0, run.crosstalk);
  run.spread = table.Number("spread", 0, run.spread);
  text("traces", run.traces);
  text("counts", run.counts);
  text("curve", run.curve);
  text("exits", run.exits);
}

// "planner=rim" into [fleet]; a value that is no number or such is a text.
Status Apply(const std::string& setting, toml::table& root) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) {
    return InvalidArgument(fmt::format("'{}': write a setting as KEY=VALUE", setting));
  }
  const std::string key = setting.substr(0, equals), value = setting.substr(equals + 1);
  if (!root.contains("fleet")) root.insert("fleet", toml::table{});
  toml::table* fleet = root["fleet"].as_table();
  if (fleet == nullptr) return {};  // which reading it says
  try {
    const toml::table made = toml::parse("value = " + value);
    fleet->insert_or_assign(key, *made.get("value"));
  } catch (const toml::parse_error&) {
    fleet->insert_or_assign(key, value);
  }
  return {};
}

Expected<FleetText> ReadFleet(std::string_view text, const std::filesystem::path& where,
                              std::span<const std::string> settings) {
  FleetText read;
  FleetInput& input = read.input;
  std::string problem;
  try {
    toml::table root = toml::parse(text);
    if (root.contains("models") && !root.contains("devices")) {
      return InvalidArgument(fmt::format(
          "{}: is a scenario of one machine ([[models]]), and a fleet ([[devices]]) is wanted "
          "here; scenarios/fleets/testbed.toml is one",
          where.string()));
    }
    for (const std::string& setting : settings) {
      if (auto applied = Apply(setting, root); !applied) return std::unexpected(applied.error());
    }
    Table table(root, "a fleet", where, problem);
    table.Only({"fleet", "devices", "links", "costs", "pipelines"});
    table.One("fleet", [&](Table& each) { ReadRun(each, read.run); });
    table.Tables("devices", "devices", true, [&](Table& each) { ReadDevice(each, input); });
    table.Tables("links", "links", false, [&](Table& each) { ReadLink(each, read); });
    table.Tables("costs", "costs", true, [&](Table& each) { ReadCost(each, input); });
    table.Tables("pipelines", "pipelines", true, [&](Table& each) { ReadPipeline(each, read); });
  } catch (const toml::parse_error& error) {
    const toml::source_position& at = error.source().begin;
    problem = fmt::format("{}:{}:{}: {}", where.string(), at.line, at.column, error.description());
  }
  if (!problem.empty()) return InvalidArgument(problem);
  if (auto checked = CheckFleet(input); !checked) {
    return InvalidArgument(fmt::format("{}: {}", where.string(), checked.error().message));
  }
  return read;
}

}  // namespace

Expected<FleetInput> ParseFleet(std::string_view text, const std::filesystem::path& where) {
  auto read = ReadFleet(text, where, {});
  if (!read) return std::unexpected(read.error());
  return std::move(read->input);
}

Expected<FleetInput> LoadFleet(const std::filesystem::path& path) {
  const auto text = ReadWhole(path, "fleet", kExample);
  if (!text) return std::unexpected(text.error());
  return ParseFleet(*text, path);
}

Expected<FleetRun> LoadFleetRun(const std::filesystem::path& path) {
  const auto text = ReadWhole(path, "fleet", kExample);
  if (!text) return std::unexpected(text.error());
  auto read = ReadFleet(*text, path, {});
  if (!read) return std::unexpected(read.error());
  return std::move(read->run);
}

bool IsFleet(std::string_view text) {
  try {
    return toml::parse(text).contains("devices");
  } catch (const toml::parse_error&) {
    return false;
  }
}

namespace {

void Scale(const FleetRun& run, FleetInput& input) {
  const auto times = [&](Duration& d) { d = FromSeconds(ToSeconds(d) * run.latency_scale); };
  for (FleetCost& cost : input.costs) {
    for (FleetBatch& batch : cost.batches) {
      times(batch.pre);
      times(batch.infer);
      times(batch.post);
    }
  }
  for (FleetPipeline& pipeline : input.pipelines) {
    pipeline.rate_rps *= run.load_scale;
    pipeline.slo -= FromMillis(run.slo_less_ms);
  }
}

// What `name` asks for of a table by name; `file` may be none.
template <class Series>
Expected<Series> Named(const std::map<std::string, Series>& table, const std::string& name,
                       const std::string& file, const char* key, const std::string& where) {
  if (name.empty()) return Series{};
  if (file.empty()) {
    return InvalidArgument(
        fmt::format("{}: '{}' is in no file; say which, [fleet] {} = \"FILE\"", where, name, key));
  }
  const auto found = table.find(name);
  if (found == table.end()) {
    return InvalidArgument(fmt::format("{}: {} has no '{}'", where, file, name));
  }
  return found->second;
}

}  // namespace

Expected<FleetScenario> ParseFleetScenario(std::string_view text,
                                           const std::filesystem::path& where,
                                           std::span<const std::string> settings) {
  auto read = ReadFleet(text, where, settings);
  if (!read) return std::unexpected(read.error());
  FleetScenario scenario{.name = where.stem().string(), .input = read->input, .run = read->run};
  Scale(scenario.run, scenario.input);
  if (!read->run.exits.empty()) {
    const auto added = AddExits(where.parent_path() / read->run.exits, scenario.input);
    if (!added) return std::unexpected(added.error());
  }
  if (!read->run.curve.empty()) {
    auto loaded = LoadCurve(where.parent_path() / read->run.curve);
    if (!loaded) return std::unexpected(loaded.error());
    scenario.curve = std::move(*loaded);
  }
  if (auto checked = CheckFleet(scenario.input); !checked) {
    return InvalidArgument(fmt::format("{}: {}", where.string(), checked.error().message));
  }
  std::map<std::string, std::vector<LinkSample>> traces;
  std::map<std::string, std::vector<double>> counts;
  if (!read->run.traces.empty()) {
    auto loaded = LoadLinkTraces(where.parent_path() / read->run.traces);
    if (!loaded) return std::unexpected(loaded.error());
    traces = std::move(*loaded);
  }
  if (!read->run.counts.empty()) {
    auto loaded = LoadCounts(where.parent_path() / read->run.counts);
    if (!loaded) return std::unexpected(loaded.error());
    counts = std::move(*loaded);
  }
  for (const std::string& name : read->link_traces) {
    auto found = Named(traces, name, read->run.traces, "traces", where.string());
    if (!found) return std::unexpected(found.error());
    scenario.link_rates.push_back(std::move(*found));
  }
  for (const auto& stages : read->stage_items) {
    auto& of = scenario.items.emplace_back();
    for (const std::string& name : stages) {
      auto found = Named(counts, name, read->run.counts, "counts", where.string());
      if (!found) return std::unexpected(found.error());
      of.push_back(std::move(*found));
    }
  }
  return scenario;
}

Expected<FleetScenario> LoadFleetScenario(const std::filesystem::path& path,
                                          std::span<const std::string> settings) {
  const auto text = ReadWhole(path, "fleet", kExample);
  if (!text) return std::unexpected(text.error());
  return ParseFleetScenario(*text, path, settings);
}

}  // namespace tactus
