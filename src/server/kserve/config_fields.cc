#include "server/kserve/config_fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest.h"
#include "core/request.h"
#include "server/kserve/ensemble_config.h"
#include "server/kserve/tensor_config.h"
#include "server/kserve/warmup_config.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;
using inference::ModelConfig;

// A batch beyond it is a slip of the pen; it also bounds what the runtime sets aside.
constexpr int kMostBatch = 65536;
// A day: longer is a mistake in the unit.
constexpr double kLongestSloMs = 86'400'000;
constexpr int kMostExits = 64;
constexpr std::array<std::pair<inference::DataType, DataType>, 14> kTypes{{
    {inference::TYPE_BOOL, DataType::kBool},
    {inference::TYPE_UINT8, DataType::kUint8},
    {inference::TYPE_UINT16, DataType::kUint16},
    {inference::TYPE_UINT32, DataType::kUint32},
    {inference::TYPE_UINT64, DataType::kUint64},
    {inference::TYPE_INT8, DataType::kInt8},
    {inference::TYPE_INT16, DataType::kInt16},
    {inference::TYPE_INT32, DataType::kInt32},
    {inference::TYPE_INT64, DataType::kInt64},
    {inference::TYPE_FP16, DataType::kFp16},
    {inference::TYPE_FP32, DataType::kFp32},
    {inference::TYPE_FP64, DataType::kFp64},
    {inference::TYPE_STRING, DataType::kBytes},
    {inference::TYPE_BF16, DataType::kBf16},
}};

std::string_view WithoutBlanks(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::vector<std::string> Split(std::string_view list) {
  std::vector<std::string> items;
  for (;;) {
    const std::size_t comma = list.find(',');
    items.emplace_back(WithoutBlanks(list.substr(0, comma)));
    if (comma == list.npos) return items;
    list.remove_prefix(comma + 1);
  }
}

template <class Number>
std::optional<Number> ReadNumber(std::string_view text) {
  text = WithoutBlanks(text);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

const std::string* FindParameter(const ModelConfig& config, const std::string& key) {
  const auto found = config.parameters().find(key);
  return found == config.parameters().end() ? nullptr : &found->second.string_value();
}

Status CheckSupported(const DeclaredConfig& config) {
  const ModelConfig& message = config.message();
  if (message.has_sequence_batching()) {
    return config.Wrong("sequence_batching", "not supported: requests keep no state");
  }
  if (message.has_ensemble_scheduling() && !IsEnsemble(message)) {
    return config.Wrong("ensemble_scheduling",
                        fmt::format("only for platform \"{}\"; say so", kEnsemblePlatform));
  }
  if (message.model_transaction_policy().decoupled()) {
    return config.Wrong("model_transaction_policy", "decoupled: not supported");
  }
  if (message.batch_input_size() > 0) return config.Wrong("batch_input", "not supported", 0);
  if (message.batch_output_size() > 0) return config.Wrong("batch_output", "not supported", 0);
  return {};
}

Status ReadService(const DeclaredConfig& config, ModelSpec& spec) {
  if (const std::string* text = FindParameter(config.message(), "slo_ms")) {
    const auto slo = ReadNumber<double>(*text);
    if (!slo || !(*slo > 0) || !(*slo <= kLongestSloMs)) {
      return config.WrongParameter(
          "slo_ms",
          fmt::format("'{}' is not a number of milliseconds above 0, up to a day", *text));
    }
    // Nanoseconds: the least is one, so that a declared SLO never reads as none.
    spec.slo = std::max(Nanos(1), FromMillis(*slo));
  }
  if (const std::string* text = FindParameter(config.message(), "priority")) {
    const auto priority = ReadNumber<int>(*text);
    if (!priority || *priority < 1 || *priority > kLowestPriority) {
      return config.WrongParameter(
          "priority",
          fmt::format("'{}' is not a whole number from 1 (highest) to {}", *text, kLowestPriority));
    }
    spec.priority = *priority;
  }
  return {};
}

// Of a batch that nobody has declared, as `tactus init` writes it.
Status ReadBatch(const DeclaredConfig& config, ModelSpec& spec) {
  const std::string* text = FindParameter(config.message(), "batch");
  if (text == nullptr) return {};
  if (*text != "assumed") {
    return config.WrongParameter(
        "batch", fmt::format("'{}' is not \"assumed\", which is all that it may be; without it, "
                             "max_batch_size is declared",
                             *text));
  }
  if (spec.platform != "onnxruntime_onnx") {
    return config.WrongParameter("batch",
                                 "only graphs of ONNX are tried; without it, max_batch_size is "
                                 "declared");
  }
  spec.batch_origin = BatchOrigin::kAssumed;
  // For the engine to find out; dims then have the batch dimension, if it is one.
  if (spec.max_batch == 0) spec.max_batch = -1;
  return {};
}

Status ReadProfile(const DeclaredConfig& config, const fs::path& folder, ModelSpec& spec) {
  const std::string* text = FindParameter(config.message(), "profile");
  if (text == nullptr) return {};
  if (spec.platform != "emulated") {
    return config.WrongParameter("profile",
                                 "only emulated models bring their latencies along; others are "
                                 "measured by `tactus profile` and served with --profile");
  }
  if (!IsPlainFileName(*text)) {
    return config.WrongParameter("profile",
                                 fmt::format("'{}' is not a file of the model's folder", *text));
  }
  spec.profile = folder / *text;
  return {};
}

Status ReadAccuracy(const DeclaredConfig& config, ModelSpec& spec) {
  const std::string* text = FindParameter(config.message(), "accuracy");
  if (text == nullptr) return {};
  const std::vector<std::string> items = Split(*text);
  if (items.size() != spec.exits.size()) {
    return config.WrongParameter(
        "accuracy", fmt::format("{} values for {} exits", items.size(), spec.exits.size()));
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto accuracy = ReadNumber<double>(items[i]);
    if (!accuracy || !(*accuracy >= 0) || !(*accuracy <= 1)) {
      return config.WrongParameter("accuracy",
                                   fmt::format("'{}' is not a fraction in [0, 1]", items[i]));
    }
    spec.exits[i].accuracy = *accuracy;
  }
  return {};
}

// The exits' graphs: what `exits` lists, or the model's one file. Names alone make the exits of a
// model without files.
Expected<std::vector<std::string>> ReadGraphs(const DeclaredConfig& config, bool reads_graphs,
                                              std::size_t names) {
  const std::string* exits = FindParameter(config.message(), "exits");
  if (exits == nullptr && reads_graphs) return std::vector{GraphFileOf(config.message())};
  if (exits == nullptr) return std::vector<std::string>(std::max<std::size_t>(names, 1));
  std::vector<std::string> files = Split(*exits);
  for (std::string& file : files) {
    if (!IsPlainFileName(file)) {
      return config.WrongParameter("exits",
                                   fmt::format("'{}' is not a file of the version folder", file));
    }
    if (!reads_graphs) file.clear();
  }
  return files;
}

Status ReadExits(const DeclaredConfig& config, const fs::path& version_folder, ModelSpec& spec) {
  std::vector<std::string> names;
  if (const std::string* text = FindParameter(config.message(), "exit_names")) {
    names = Split(*text);
  }
  const bool reads_graphs = ReadsGraphs(config.message());
  const auto graphs = ReadGraphs(config, reads_graphs, names.size());
  if (!graphs) return std::unexpected(graphs.error());
  if (graphs->size() > kMostExits) {
    return config.WrongParameter("exits", fmt::format("more than {} exits", kMostExits));
  }
  if (!names.empty() && names.size() != graphs->size()) {
    return config.WrongParameter(
        "exit_names", fmt::format("{} names for {} exits", names.size(), graphs->size()));
  }
  std::set<std::string> seen;
  for (std::size_t i = 0; i < graphs->size(); ++i) {
    ExitSpec exit;
    exit.name = names.empty() ? std::to_string(i + 1) : names[i];
    if (exit.name.empty()) return config.WrongParameter("exit_names", "a name is empty");
    if (!seen.insert(exit.name).second) {
      return config.WrongParameter("exit_names", fmt::format("'{}' stands twice", exit.name));
    }
    if (reads_graphs) exit.graph = version_folder / (*graphs)[i];
    spec.exits.push_back(std::move(exit));
  }
  return ReadAccuracy(config, spec);
}

constexpr std::array<std::string_view, 7> kOurKeys{"slo_ms",     "priority", "profile", "exits",
                                                   "exit_names", "accuracy", "batch"};

bool IsOurs(const ModelConfig& config, std::string_view key) {
  if (IsEnsemble(config)) return IsEnsembleKey(key);
  if (std::find(kOurKeys.begin(), kOurKeys.end(), key) != kOurKeys.end()) return true;
  if (PlatformOf(config) == kOperatorPlatform && (key == "op" || key.find('.') != key.npos))
    return true;
  // A model that declares no inputs takes them from its file.
  const auto has = [](const auto& tensors, std::string_view name) {
    return tensors.empty() ||
           std::ranges::any_of(tensors, [&](const auto& each) { return each.name() == name; });
  };
  if (key.starts_with(kAnyShapeKey)) {
    key.remove_prefix(kAnyShapeKey.size());
    return MayHaveAnyShape(config) && (has(config.input(), key) || has(config.output(), key));
  }
  if (!key.starts_with(kProfileShapeKey)) return false;
  key.remove_prefix(kProfileShapeKey.size());
  return has(config.input(), key);
}

// Lanes are the server's. What asks for no more than one instance on a processor gets it.
bool AsksForInstances(const inference::ModelInstanceGroup& group) {
  const bool elsewhere = group.kind() == inference::ModelInstanceGroup::KIND_GPU ||
                         group.kind() == inference::ModelInstanceGroup::KIND_MODEL;
  return group.count() > 1 || elsewhere || !group.gpus().empty();
}

}  // namespace

std::vector<std::string> Doubts(const DeclaredConfig& config) {
  const ModelConfig& message = config.message();
  std::vector<std::string> doubts;
  const auto doubt = [&](const std::unexpected<Error>& told) {
    doubts.push_back(told.error().message);
  };
  std::set<std::string> keys;  // in an order that does not change
  for (const auto& [key, value] : message.parameters()) {
    if (!IsOurs(message, key)) keys.insert(key);
  }
  std::vector<std::string> ours(kOurKeys.begin(), kOurKeys.end());
  ours.push_back(std::string(kProfileShapeKey) + "INPUT");
  ours.push_back(std::string(kAnyShapeKey) + "TENSOR");
  if (IsEnsemble(message)) ours = EnsembleKeys();
  for (const std::string& key : keys) {
    doubt(config.WrongParameter(
        key,
        fmt::format("no key of Tactus{}, so it changes nothing here; {}: {}", DidYouMean(key, ours),
                    IsEnsemble(message) ? "ensembles have" : "there are", fmt::join(ours, ", "))));
  }
  for (int i = 0; i < message.instance_group_size(); ++i) {
    if (!AsksForInstances(message.instance_group(i))) continue;
    doubt(config.Wrong("instance_group",
                       "not heeded: all models share the server's lanes (--lanes)", i));
  }
  if (message.dynamic_batching().has_default_queue_policy() ||
      !message.dynamic_batching().priority_queue_policy().empty()) {
    doubt(config.Wrong("dynamic_batching",
                       "its queue policies are not heeded: state slo_ms in parameters"));
  }
  if (message.dynamic_batching().preferred_batch_size_size() > 0 ||
      message.dynamic_batching().max_queue_delay_microseconds() > 0) {
    doubt(config.Wrong("dynamic_batching",
                       "preferred_batch_size and max_queue_delay_microseconds are not heeded: the "
                       "policy forms batches by deadlines (slo_ms in parameters)"));
  }
  if (message.dynamic_batching().priority_levels() > 0 ||
      message.dynamic_batching().default_priority_level() > 0) {
    doubt(config.Wrong("dynamic_batching",
                       "its priority levels are not heeded: state priority in parameters"));
  }
  if (message.has_optimization()) {
    doubt(config.Wrong("optimization",
                       "not heeded: graphs are optimised as far as ONNX Runtime can"));
  }
  if (message.has_model_operations()) {
    doubt(config.Wrong("model_operations", "not heeded: no libraries of operators are loaded"));
  }
  if (message.model_warmup_size() > 1) {
    doubt(config.Wrong("model_warmup",
                       "not heeded: the first entry is the row that the model is measured with",
                       1));
  }
  if (message.response_cache().enable()) doubt(config.Wrong("response_cache", "not heeded"));
  return doubts;
}

bool IsPlainFileName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

Status CheckPlatform(const DeclaredConfig& config, const std::vector<std::string>& platforms) {
  if (platforms.empty()) return {};
  const std::string platform = PlatformOf(config.message());
  if (std::find(platforms.begin(), platforms.end(), platform) != platforms.end()) return {};
  return config.Wrong(config.message().platform().empty() ? "backend" : "platform",
                      fmt::format("'{}' is none that this server runs; there are: {}, ensemble",
                                  platform, fmt::join(platforms, ", ")));
}

std::string PlatformOf(const ModelConfig& config) {
  if (!config.platform().empty()) return config.platform();
  if (config.backend().empty() || config.backend() == "onnxruntime") return "onnxruntime_onnx";
  return config.backend();
}

bool IsEnsemble(const ModelConfig& config) { return config.platform() == kEnsemblePlatform; }

bool MayHaveAnyShape(const ModelConfig& config) { return PlatformOf(config) == "onnxruntime_onnx"; }

bool ReadsGraphs(const ModelConfig& config) {
  const std::string platform = PlatformOf(config);
  if (platform == kOperatorPlatform) return !config.default_model_filename().empty();
  return platform != "identity" && platform != "emulated" && platform != kEnsemblePlatform;
}

std::string GraphFileOf(const ModelConfig& config) {
  return config.default_model_filename().empty() ? "model.onnx" : config.default_model_filename();
}

std::optional<DataType> FromWire(inference::DataType type) {
  const auto* row =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& r) { return r.first == type; });
  return row == kTypes.end() ? std::nullopt : std::optional(row->second);
}

inference::DataType ToWire(DataType type) {
  return std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& r) { return r.second == type; })
      ->first;
}

Expected<ModelSpec> SpecOf(const DeclaredConfig& config, const fs::path& folder,
                           std::int64_t version) {
  const ModelConfig& message = config.message();
  ModelSpec spec;
  spec.name = folder.filename().string();
  spec.version = version;
  spec.platform = PlatformOf(message);
  spec.max_batch = message.max_batch_size();
  if (!message.name().empty() && message.name() != spec.name) {
    return config.Wrong(
        "name", fmt::format("'{}' is not the folder's name '{}'; make them equal, or leave it out",
                            message.name(), spec.name));
  }
  if (spec.max_batch < 0 || spec.max_batch > kMostBatch) {
    return config.Wrong("max_batch_size",
                        fmt::format("{} is not in [0, {}]", spec.max_batch, kMostBatch));
  }
  spec.batch_place = config.PlaceOfField("max_batch_size");
  if (!IsPlainFileName(GraphFileOf(message))) {
    return config.Wrong("default_model_filename", "not a file of the version folder");
  }
  if (auto supported = CheckSupported(config); !supported) {
    return std::unexpected(supported.error());
  }
  auto inputs = ReadInputs(config);
  if (!inputs) return std::unexpected(inputs.error());
  auto outputs = ReadOutputs(config);
  if (!outputs) return std::unexpected(outputs.error());
  spec.inputs = std::move(*inputs);
  spec.outputs = std::move(*outputs);
  if (auto read = ReadService(config, spec); !read) return std::unexpected(read.error());
  if (auto read = ReadBatch(config, spec); !read) return std::unexpected(read.error());
  if (auto read = ReadProfile(config, folder, spec); !read) return std::unexpected(read.error());
  if (auto read = ReadExits(config, folder / std::to_string(version), spec); !read) {
    return std::unexpected(read.error());
  }
  auto sample = ReadSample(config, folder);
  if (!sample) return std::unexpected(sample.error());
  spec.sample = std::move(*sample);
  for (const auto& [key, value] : message.parameters()) {
    spec.parameters[key] = value.string_value();
  }
  spec.config = message.SerializeAsString();
  return spec;
}

Expected<std::vector<std::int64_t>> ServedVersions(const DeclaredConfig& config,
                                                   const std::vector<std::int64_t>& present) {
  const inference::ModelVersionPolicy& policy = config.message().version_policy();
  if (policy.has_all()) return present;
  if (policy.has_specific()) {
    std::set<std::int64_t> wanted(policy.specific().versions().begin(),
                                  policy.specific().versions().end());
    if (wanted.empty()) return config.Wrong("version_policy", "specific names no version");
    std::vector<std::int64_t> there;
    std::ranges::set_intersection(wanted, present, std::back_inserter(there));
    if (!there.empty()) return there;  // as Triton: those that are there serve
    return config.Wrong("version_policy",
                        fmt::format("there is no version {}", fmt::join(wanted, ", ")));
  }
  std::size_t count = 1;
  if (policy.has_latest()) {
    count = policy.latest().num_versions();
    if (count == 0)
      return config.Wrong("version_policy", "latest: num_versions must be at least 1");
  }
  const std::size_t skipped = present.size() - std::min(count, present.size());
  return std::vector(present.begin() + static_cast<std::ptrdiff_t>(skipped), present.end());
}

}  // namespace tactus
