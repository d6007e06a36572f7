#include "stream/answer_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <type_traits>

#include <nlohmann/json.hpp>

namespace tactus {
namespace {

using LineJson = nlohmann::ordered_json;

// 0.1f as 0.1, not as the 0.10000000149011612 that it is.
double Shortest(float value) {
  char text[32] = {};
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  return error == std::errc() ? std::strtod(text, nullptr) : static_cast<double>(value);
}

template <class T>
LineJson Elements(const std::string& bytes) {
  LineJson list = LineJson::array();
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    if constexpr (std::is_same_v<T, float>) {
      list.push_back(Shortest(value));
    } else {
      list.push_back(value);
    }
  }
  return list;
}

LineJson Texts(const std::string& bytes) {
  LineJson list = LineJson::array();
  for (std::size_t at = 0; at + 4 <= bytes.size();) {
    std::uint32_t length = 0;
    std::memcpy(&length, bytes.data() + at, 4);
    at += 4;
    length = static_cast<std::uint32_t>(std::min<std::size_t>(length, bytes.size() - at));
    list.push_back(bytes.substr(at, length));
    at += length;
  }
  return list;
}

std::optional<LineJson> Data(const AnswerTensor& tensor) {
  switch (tensor.type) {
    case DataType::kBool:
    case DataType::kUint8:
      return Elements<std::uint8_t>(tensor.bytes);
    case DataType::kUint16:
      return Elements<std::uint16_t>(tensor.bytes);
    case DataType::kUint32:
      return Elements<std::uint32_t>(tensor.bytes);
    case DataType::kUint64:
      return Elements<std::uint64_t>(tensor.bytes);
    case DataType::kInt8:
      return Elements<std::int8_t>(tensor.bytes);
    case DataType::kInt16:
      return Elements<std::int16_t>(tensor.bytes);
    case DataType::kInt32:
      return Elements<std::int32_t>(tensor.bytes);
    case DataType::kInt64:
      return Elements<std::int64_t>(tensor.bytes);
    case DataType::kFp32:
      return Elements<float>(tensor.bytes);
    case DataType::kFp64:
      return Elements<double>(tensor.bytes);
    case DataType::kBytes:
      return Texts(tensor.bytes);
    default:
      return std::nullopt;
  }
}

constexpr std::size_t kMostBytes = std::size_t{256} << 10;  // of an output that is told

double Rounded(double value) { return std::round(value * 1000) / 1000; }

std::string Written(const LineJson& json) {
  return json.dump(-1, ' ', false, LineJson::error_handler_t::replace);
}

}  // namespace

std::string ToJsonLine(const AnsweredFrame& frame, std::size_t most_elements) {
  LineJson outputs = LineJson::object();
  for (const AnswerTensor& tensor : frame.answer.outputs) {
    LineJson& output = outputs[tensor.name];
    output = {{"datatype", Name(tensor.type)}, {"shape", tensor.shape}};
    const auto elements = ElementCount(tensor.shape);
    if (!elements || static_cast<std::size_t>(*elements) > most_elements) continue;
    if (tensor.bytes.size() > kMostBytes) continue;  // long texts
    if (auto data = Data(tensor)) output["data"] = *std::move(data);
  }
  LineJson line = {{"stream", frame.stream},
                   {"frame", frame.number},
                   {"captured_ms", frame.captured_at},
                   {"latency_ms", Rounded(ToMillis(frame.latency))},
                   {"late", frame.end == FrameEnd::kLate},
                   {"outputs", std::move(outputs)}};
  if (frame.answer.emulated) line["emulated"] = true;
  return Written(line);
}

std::string ToJson(const std::string& name, const StreamConfig& config,
                   const StreamReading& reading, const WebhookReading* webhook) {
  LineJson frames = {{"read", reading.counts.read}};
  for (std::size_t i = 0; i < kFrameEnds; ++i) {
    const FrameEndName end = Name(static_cast<FrameEnd>(i));
    frames[std::string(end.stage)][std::string(end.reason)] = reading.counts.ends[i];
  }
  LineJson json = {{"name", name},
                   {"state", Name(reading.state)},
                   {"reconnects", reading.reconnects},
                   {"slo_ms", ToMillis(reading.slo)},
                   {"frames", std::move(frames)},
                   {"waiting", reading.waiting},
                   {"in_flight", reading.in_flight},
                   {"latency_ms",
                    {{"p50", Rounded(ToMillis(reading.latency_p50))},
                     {"p99", Rounded(ToMillis(reading.latency_p99))}}},
                   {"config", LineJson::parse(ToJson(config))}};
  if (!reading.error.empty()) json["error"] = reading.error;
  if (webhook != nullptr) {
    LineJson& told = json["webhook"];
    for (std::size_t i = 0; i < kWebhookEnds; ++i) {
      told[std::string(Name(static_cast<WebhookEnd>(i)))] = webhook->ends[i];
    }
    if (!webhook->error.empty()) told["error"] = webhook->error;
  }
  return Written(json);
}

}  // namespace tactus
