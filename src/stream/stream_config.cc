#include "stream/stream_config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tactus {
namespace {

using ConfigJson = nlohmann::json;

constexpr std::size_t kLongestText = 4096;

// Reads the object's keys; the first problem is kept.
class Fields {
 public:
  explicit Fields(const ConfigJson& object) : object_(object) {}

  void Text(const char* key, std::string& into) {
    const auto value = object_.find(key);
    if (value == object_.end()) return;
    const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
    const auto* text = value->get_ptr<const std::string*>();
    if (text == nullptr || text->empty() || text->size() > kLongestText ||
        std::ranges::any_of(*text, control)) {
      return Complain(key, fmt::format("a text of 1 to {} bytes on one line", kLongestText));
    }
    into = *text;
  }
  void Number(const char* key, double low, double high, double& into) {
    const auto value = object_.find(key);
    if (value == object_.end()) return;
    const double number = value->is_number() ? value->get<double>() : NAN;
    // Also false for a number that is none.
    if (!(number >= low && number <= high)) {
      return Complain(key, fmt::format("a number from {:g} to {:g}", low, high));
    }
    into = number;
  }
  void Whole(const char* key, int low, int high, int& into) {
    double number = into;
    Number(key, low, high, number);
    if (number != std::floor(number)) {
      return Complain(key, fmt::format("a whole number from {} to {}", low, high));
    }
    into = static_cast<int>(number);
  }
  void Seconds(const char* key, double low, double high, Duration& into) {
    double seconds = ToSeconds(into);
    Number(key, low, high, seconds);
    if (object_.contains(key)) into = FromSeconds(seconds);
  }
  void Flag(const char* key, bool& into) {
    const auto value = object_.find(key);
    if (value == object_.end()) return;
    if (!value->is_boolean()) return Complain(key, "true or false");
    into = *value;
  }
  void Complain(std::string_view key, std::string_view takes) {
    if (problem_.empty()) problem_ = fmt::format("'{}' must be {}", key, takes);
  }
  const std::string& problem() const { return problem_; }

 private:
  const ConfigJson& object_;
  std::string problem_;
};

constexpr std::array kKeys = {
    "source", "model",     "url",         "ca",       "token_file", "fps",  "every",    "queue",
    "slo_ms", "in_flight", "reconnect_s", "attempts", "timeout_s",  "loop", "realtime", "webhook"};

StreamConfig ReadFields(Fields& fields) {
  StreamConfig config;
  fields.Text("source", config.source.source);
  fields.Text("model", config.model);
  fields.Text("url", config.server.url);
  fields.Text("ca", config.server.ca);
  fields.Text("token_file", config.server.token_file);
  std::string webhook;
  fields.Text("webhook", webhook);
  config.webhook = ParseHttpUrl(webhook, 80);
  if (!webhook.empty() && !config.webhook) {
    fields.Complain("webhook", "an address such as http://HOST:PORT/PATH; https is not spoken");
  }
  fields.Number("fps", 0, 1000, config.flow.most_rate);
  fields.Whole("every", 1, 100'000, config.flow.every);
  fields.Whole("queue", 1, 64, config.flow.queue);
  fields.Whole("in_flight", 1, 100'000, config.flow.in_flight);
  double slo = 0;
  fields.Number("slo_ms", 0, 600'000, slo);
  config.flow.slo = FromMillis(slo);
  fields.Seconds("reconnect_s", 0.05, 3600, config.reconnect.interval);
  fields.Whole("attempts", 0, 1'000'000, config.reconnect.attempts);
  fields.Seconds("timeout_s", 0.1, 3600, config.source.timeout);
  fields.Flag("loop", config.loop);
  fields.Flag("realtime", config.realtime);
  return config;
}

}  // namespace

bool IsStreamName(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= 64 && name[0] != '.' && std::ranges::all_of(name, fits);
}

Expected<StreamConfig> ParseStreamConfig(std::string_view text) {
  const ConfigJson json = ConfigJson::parse(text, nullptr, false);
  if (!json.is_object()) return InvalidArgument("a stream is described by a JSON object");
  Fields fields(json);
  for (const auto& [key, value] : json.items()) {
    if (std::ranges::find(kKeys, key) == kKeys.end()) {
      return InvalidArgument(fmt::format("a stream has no key '{:.64}'; the keys are {}", key,
                                         fmt::join(kKeys, ", ")));
    }
  }
  StreamConfig config = ReadFields(fields);
  if (config.source.source.empty()) fields.Complain("source", "given: a path or a URL");
  if (config.model.empty()) fields.Complain("model", "given: the model or pipeline");
  if (config.server.url.empty() &&
      !(config.server.ca.empty() && config.server.token_file.empty())) {
    fields.Complain("url", "given: 'ca' and 'token_file' are for another server");
  }
  if (config.loop && IsLive(config.source.source)) {
    fields.Complain("loop", "left out: only a file has a beginning");
  }
  if (!fields.problem().empty()) return InvalidArgument("the stream: " + fields.problem());
  if (Status known = CheckSource(config.source.source); !known) {
    return std::unexpected(known.error());
  }
  return config;
}

std::string ToJson(const StreamConfig& config) {
  // Seconds by way of milliseconds: 0.3 s stays 0.3.
  ConfigJson json = {{"source", Shown(config.source.source)},
                     {"model", config.model},
                     {"fps", config.flow.most_rate},
                     {"every", config.flow.every},
                     {"queue", config.flow.queue},
                     {"in_flight", config.flow.in_flight},
                     {"slo_ms", ToMillis(config.flow.slo)},
                     {"reconnect_s", ToMillis(config.reconnect.interval) / 1000},
                     {"attempts", config.reconnect.attempts},
                     {"timeout_s", ToMillis(config.source.timeout) / 1000},
                     {"loop", config.loop},
                     {"realtime", config.realtime}};
  if (!config.server.url.empty()) json["url"] = config.server.url;
  if (!config.server.ca.empty()) json["ca"] = config.server.ca;
  if (!config.server.token_file.empty()) json["token_file"] = config.server.token_file;
  // Its path may be a secret.
  if (config.webhook)
    json["webhook"] = fmt::format("http://{}/***", config.webhook->endpoint.text());
  return json.dump(-1, ' ', false, ConfigJson::error_handler_t::replace);
}

}  // namespace tactus
