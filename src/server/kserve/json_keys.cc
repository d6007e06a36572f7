#include "server/kserve/json_keys.h"

#include <cctype>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>

namespace tactus {
namespace {

std::string WithUnderscores(const std::string& key) {
  std::string text;
  for (const char c : key) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0) text += '_';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

}  // namespace

std::optional<std::string> KeyGivenTwice(std::string_view json) {
  using Event = nlohmann::json::parse_event_t;
  std::vector<std::set<std::string>> objects;  // that are open, with their keys so far
  std::optional<std::string> twice;
  const auto look = [&](int, Event event, const nlohmann::json& parsed) {
    if (event == Event::object_start) objects.emplace_back();
    if (event == Event::object_end) objects.pop_back();
    if (event != Event::key) return true;
    const auto& key = parsed.get_ref<const std::string&>();
    if (!objects.back().insert(WithUnderscores(key)).second && !twice) twice = key;
    return true;
  };
  [[maybe_unused]] const auto parsed = nlohmann::json::parse(json, look, false);
  return twice;
}

}  // namespace tactus
