// Reads a JSON document that people may have edited: every wrong value is reported by its path, as
// in "models[0].exits[2].cells[4].mean_ms: must be a number from 0 on". The first problem is kept;
// reading goes on with defaults, so that the caller checks once at the end.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/expected.h"
#include "base/serving_time.h"

namespace tactus {

// "line:column" of a byte.
inline std::string LineColumn(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column =
      start == std::string_view::npos ? before.size() : before.size() - start;
  return std::to_string(line) + ":" + std::to_string(std::max<std::size_t>(column, 1));
}

// kInvalidArgument names `where`, the line and column, and ends with `remedy`.
Expected<nlohmann::json> ParseJson(std::string_view text, std::string_view where,
                                   std::string_view remedy);

class JsonReader {
 public:
  JsonReader(const nlohmann::json& root, std::string& problem) : node_(root), problem_(problem) {}

  bool Has(const char* key) const { return node_.is_object() && node_.contains(key); }

  // The keys of an object.
  std::vector<std::string> Keys() const {
    std::vector<std::string> keys;
    if (!node_.is_object()) return keys;
    for (const auto& [key, value] : node_.items()) keys.push_back(key);
    return keys;
  }
  double Number(const char* key, double low, double fallback = kRequired) const {
    const nlohmann::json* value = Get(key, !std::isnan(fallback));
    if (value == nullptr) return std::isnan(fallback) ? 0 : fallback;
    const double number = value->is_number() ? value->get<double>() : kRequired;
    // Also false for a number that is none.
    if (number >= low && number <= kMost) return number;
    Complain(key, "must be a number from " + nlohmann::json(low).dump() + " on");
    return 0;
  }
  std::int64_t Integer(const char* key, std::int64_t low, std::int64_t high,
                       std::int64_t fallback = -1) const {
    const nlohmann::json* value = Get(key, fallback >= 0);
    if (value == nullptr) return fallback;
    const bool fits = value->is_number_unsigned()
                          ? value->get<std::uint64_t>() <= static_cast<std::uint64_t>(high)
                          : value->is_number_integer();
    if (fits && value->get<std::int64_t>() >= low) return value->get<std::int64_t>();
    Complain(key,
             "must be a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    return low;
  }
  std::string Text(const char* key, bool optional = false) const {
    const nlohmann::json* value = Get(key, optional);
    if (value == nullptr) return "";
    if (value->is_string()) return value->get<std::string>();
    Complain(key, "must be a string");
    return "";
  }
  // Milliseconds.
  Duration Time(const char* key) const {
    constexpr double kMostMs = 1e9;  // as nanoseconds they leave room for sums
    const double ms = Number(key, 0);
    if (ms > kMostMs) Complain(key, "is more than 11 days");
    return FromMillis(std::min(ms, kMostMs));
  }
  // Complains of the first key that is none of these.
  void Only(std::initializer_list<std::string_view> known) const {
    if (!node_.is_object()) return;
    for (const auto& [key, value] : node_.items()) {
      if (std::ranges::find(known, key) != known.end()) continue;
      std::string names;
      for (const std::string_view name : known) {
        names += (names.empty() ? "" : ", ") + std::string(name);
      }
      return Complain(key.c_str(), "unknown here; there are " + names);
    }
  }
  // An array of numbers; none when it is not there.
  std::vector<double> Numbers(const char* key, double low) const {
    std::vector<double> numbers;
    const nlohmann::json* value = Get(key, true);
    if (value == nullptr) return numbers;
    if (!value->is_array()) Complain(key, "must be an array of numbers");
    for (std::size_t i = 0; value->is_array() && i < value->size() && problem_.empty(); ++i) {
      const nlohmann::json& item = (*value)[i];
      numbers.push_back(item.is_number() ? item.get<double>() : kRequired);
      if (numbers.back() >= low && numbers.back() <= kMost) continue;
      const JsonReader element(item, problem_, this, key, i);
      element.Complain(nullptr, "must be a number from " + nlohmann::json(low).dump() + " on");
    }
    return numbers;
  }
  // Calls `read(JsonReader)` for the object under `key`.
  template <class Read>
  void Object(const char* key, Read read) const {
    const nlohmann::json* value = Get(key, false);
    if (value == nullptr) return;
    if (!value->is_object()) return Complain(key, "must be an object");
    read(JsonReader(*value, problem_, this, key, kNoIndex));
  }
  // Calls `read(JsonReader)` for each element, all of them objects.
  template <class Read>
  void Each(const char* key, Read read) const {
    const nlohmann::json* value = Get(key, false);
    if (value == nullptr) return;
    if (!value->is_array()) return Complain(key, "must be an array");
    for (std::size_t i = 0; i < value->size() && problem_.empty(); ++i) {
      const JsonReader element((*value)[i], problem_, this, key, i);
      if (!(*value)[i].is_object()) return element.Complain(nullptr, "must be an object");
      read(element);
    }
  }
  void Complain(const char* key, std::string_view what) const {
    if (!problem_.empty()) return;
    problem_ = Path();
    if (key != nullptr) problem_ += (problem_.empty() ? "" : ".") + std::string(key);
    if (!problem_.empty()) problem_ += ": ";  // the document itself has no path
    problem_ += what;
  }

 private:
  static constexpr double kRequired = std::numeric_limits<double>::quiet_NaN();
  static constexpr double kMost = 1e12;
  static constexpr std::size_t kNoIndex = static_cast<std::size_t>(-1);

  JsonReader(const nlohmann::json& node, std::string& problem, const JsonReader* parent,
             const char* key, std::size_t index)
      : node_(node), problem_(problem), parent_(parent), key_(key), index_(index) {}

  const nlohmann::json* Get(const char* key, bool optional) const {
    if (!node_.is_object()) {
      Complain(nullptr, "must be an object");
      return nullptr;
    }
    const auto found = node_.find(key);
    if (found != node_.end()) return &*found;
    if (!optional) Complain(key, "is missing");
    return nullptr;
  }
  std::string Path() const {
    if (parent_ == nullptr) return "";
    std::string path = parent_->Path();
    if (!path.empty()) path += ".";
    path += key_;
    if (index_ != kNoIndex) path += "[" + std::to_string(index_) + "]";
    return path;
  }

  const nlohmann::json& node_;
  std::string& problem_;
  const JsonReader* parent_ = nullptr;
  const char* key_ = "";
  std::size_t index_ = kNoIndex;
};

// What `read` makes of a document; kInvalidArgument names `where` and the path of what is wrong,
// and ends with `remedy`.
template <class Read>
auto ReadJson(std::string_view text, std::string_view where, std::string_view remedy, Read read)
    -> Expected<decltype(read(std::declval<JsonReader>()))> {
  const auto document = ParseJson(text, where, remedy);
  if (!document) return std::unexpected(document.error());
  std::string problem;
  auto made = read(JsonReader(*document, problem));
  if (problem.empty()) return made;
  return InvalidArgument(std::string(where) + ": " + problem + std::string(remedy));
}

}  // namespace tactus
