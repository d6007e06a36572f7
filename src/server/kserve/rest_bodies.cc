#include "server/kserve/rest_bodies.h"

#include <iterator>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "server/kserve/json_keys.h"
#include "server/kserve/json_text.h"

namespace tactus {
namespace {

using Json = nlohmann::ordered_json;

// Names may come from folders and paths: bytes that are not UTF-8 are replaced, not thrown about.
std::string Text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json ToJson(const DurationCount& duration) {
  return {{"count", duration.count}, {"ns", duration.ns}};
}

Json ToJson(const std::vector<TensorSpec>& tensors) {
  Json list = Json::array();
  for (const TensorSpec& tensor : tensors) {
    list.push_back(
        {{"name", tensor.name}, {"datatype", Name(tensor.type)}, {"shape", tensor.dims}});
  }
  return list;
}

Json ToJson(const ModelStatistics& model) {
  Json batches = Json::array();
  for (const ModelStatistics::BatchSize& batch : model.batches) {
    batches.push_back({{"batch_size", batch.batch_size},
                       {"compute_input", ToJson(batch.compute_input)},
                       {"compute_infer", ToJson(batch.compute_infer)},
                       {"compute_output", ToJson(batch.compute_output)}});
  }
  Json json = {{"name", model.name},
               {"version", std::to_string(model.version)},
               {"last_inference", model.last_inference_ms},
               {"inference_count", model.inference_count},
               {"execution_count", model.execution_count},
               {"inference_stats",
                {{"success", ToJson(model.success)},
                 {"fail", ToJson(model.fail)},
                 {"queue", ToJson(model.queue)},
                 {"compute_input", ToJson(model.compute_input)},
                 {"compute_infer", ToJson(model.compute_infer)},
                 {"compute_output", ToJson(model.compute_output)},
                 {"cache_hit", ToJson(DurationCount{})},
                 {"cache_miss", ToJson(DurationCount{})}}},
               {"response_stats", Json::object()},
               {"batch_stats", std::move(batches)},
               {"memory_usage", Json::array()}};
  if (model.emulated) json["emulated"] = true;
  return json;
}

// An object, or an empty one for an empty body.
Expected<Json> ParseObject(std::string_view body) {
  if (body.empty()) return Json::object();
  Json json = Json::parse(body, nullptr, false);
  if (json.is_discarded()) {
    return InvalidArgument("failed to parse the request JSON: the body is cut off or is no JSON");
  }
  if (!json.is_object()) return InvalidArgument("the request JSON must be an object");
  if (const auto key = KeyGivenTwice(body)) {
    return InvalidArgument(
        fmt::format("failed to parse the request JSON: '{}' is given twice", *key));
  }
  return json;
}

void DropNulls(Json& object) {
  for (auto member = object.begin(); member != object.end();) {
    member = member->is_null() ? object.erase(member) : std::next(member);
  }
}

// The same of a request to the repository, where null stands for what is not said.
Expected<Json> ParseOptional(std::string_view body) {
  auto json = ParseObject(body);
  if (!json) return json;
  DropNulls(*json);
  const auto parameters = json->find("parameters");
  if (parameters != json->end() && parameters->is_object()) DropNulls(*parameters);
  return json;
}

}  // namespace

std::string ErrorJson(std::string_view text) {
  std::string json = R"({"error":)";
  AppendJsonString(json, text);
  json += '}';
  return json;
}

std::string ServerMetadataJson(bool strict_triton, SettingsServed settings) {
  Json extensions = Json::array();
  for (const std::string_view extension : ServerExtensions(settings)) {
    extensions.push_back(extension);
  }
  return Text({{"name", ServerName(strict_triton)},
               {"version", kServerVersion},
               {"extensions", std::move(extensions)}});
}

std::string ModelMetadataJson(const ModelSpec& model, std::span<const std::int64_t> versions) {
  Json numbers = Json::array();
  for (const std::int64_t version : versions) numbers.push_back(std::to_string(version));
  return Text({{"name", model.name},
               {"versions", std::move(numbers)},
               {"platform", model.platform},
               {"inputs", ToJson(model.inputs)},
               {"outputs", ToJson(model.outputs)}});
}

std::string ModelReadyJson(std::string_view model, bool ready) {
  std::string json = R"({"name":)";
  AppendJsonString(json, model);
  json += ready ? R"(,"ready":true})" : R"(,"ready":false})";
  return json;
}

std::string StatisticsJson(std::span<const ModelStatistics> statistics) {
  Json list = Json::array();
  for (const ModelStatistics& model : statistics) list.push_back(ToJson(model));
  return Text({{"model_stats", std::move(list)}});
}

std::string IndexJson(std::span<const ModelState> models, bool ready_only) {
  Json list = Json::array();
  for (const ModelState& model : models) {
    if (ready_only && model.state != "READY") continue;
    list.push_back({{"name", model.name},
                    {"version", std::to_string(model.version)},
                    {"state", model.state},
                    {"reason", model.reason}});
  }
  return Text(list);
}

Expected<bool> ParseIndexRequest(std::string_view body) {
  const auto json = ParseOptional(body);
  if (!json) return std::unexpected(json.error());
  const auto ready = json->find("ready");
  if (ready == json->end()) return false;
  if (!ready->is_boolean()) return InvalidArgument("'ready' must be a boolean");
  return ready->get<bool>();
}

Expected<LoadOverride> ParseLoadRequest(std::string_view body) {
  const auto json = ParseOptional(body);
  if (!json) return std::unexpected(json.error());
  const auto parameters = json->find("parameters");
  LoadOverride given;
  if (parameters == json->end()) return given;
  if (!parameters->is_object()) return InvalidArgument("'parameters' must be an object");
  for (const auto& [key, value] : parameters->items()) {
    if (key.starts_with(kFilePrefix)) {
      auto bytes = value.is_string() ? FromBase64(value.get_ref<const std::string&>())
                                     : std::optional<std::string>();
      if (!bytes) return InvalidArgument(fmt::format("'{}' must be a string of Base64", key));
      given.files.emplace(key.substr(kFilePrefix.size()), *std::move(bytes));
    } else if (key != "config") {
      return InvalidArgument(
          fmt::format("unknown parameter '{}'; known: config, {}PATH", key, kFilePrefix));
    } else if (!value.is_string()) {
      return InvalidArgument("'config' must be a string of JSON");
    } else {
      given.config = value.get<std::string>();
    }
  }
  return given;
}

Expected<bool> ParseUnloadRequest(std::string_view body) {
  const auto json = ParseOptional(body);
  if (!json) return std::unexpected(json.error());
  const auto parameters = json->find("parameters");
  if (parameters == json->end()) return false;
  if (!parameters->is_object()) return InvalidArgument("'parameters' must be an object");
  const auto with_steps = parameters->find("unload_dependents");
  if (with_steps == parameters->end()) return false;
  if (!with_steps->is_boolean()) return InvalidArgument("'unload_dependents' must be a boolean");
  return with_steps->get<bool>();
}

Expected<LogValues> ParseLogSettings(std::string_view body) {
  const auto json = ParseObject(body);
  if (!json) return std::unexpected(json.error());
  LogValues values;
  for (const auto& [name, value] : json->items()) {
    if (value.is_boolean()) {
      values.emplace(name, value.get<bool>());
    } else if (value.is_number_unsigned() &&
               value.get<std::uint64_t>() <= std::numeric_limits<std::uint32_t>::max()) {
      values.emplace(name, value.get<std::uint32_t>());
    } else if (value.is_string()) {
      values.emplace(name, value.get<std::string>());
    } else {
      return InvalidArgument(fmt::format(
          "log setting '{}' must be true or false, a whole number from 0 on, or a string", name));
    }
  }
  return values;
}

std::string LogSettingsJson(const LogValues& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) {
    std::visit([&, &name = name](const auto& each) { json[name] = each; }, value);
  }
  return Text(json);
}

Expected<TraceValues> ParseTraceSettings(std::string_view body) {
  const auto json = ParseObject(body);
  if (!json) return std::unexpected(json.error());
  TraceValues values;
  for (const auto& [name, value] : json->items()) {
    std::vector<std::string>& texts = values[name];
    const Json list = value.is_array()  ? value
                      : value.is_null() ? Json::array()
                                        : Json::array({value});
    for (const Json& each : list) {
      if (each.is_string()) {
        texts.push_back(each.get<std::string>());
      } else if (each.is_number_integer()) {
        texts.push_back(each.dump());
      } else {
        return InvalidArgument(fmt::format(
            "trace setting '{}' must be a string, a list of strings, or null to clear it", name));
      }
    }
  }
  return values;
}

// Triton has a list of levels, and one string of everything else.
std::string TraceSettingsJson(const TraceValues& values) {
  Json json = Json::object();
  for (const auto& [name, texts] : values) {
    json[name] = name == "trace_level" || texts.size() != 1 ? Json(texts) : Json(texts.front());
  }
  return Text(json);
}

}  // namespace tactus
