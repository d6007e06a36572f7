#include "knowledge/postgres/connection_text.h"

#include <array>
#include <utility>

namespace tactus::knowledge {
namespace {

// Seconds, but for tcp_user_timeout's milliseconds.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kLimits = {{
    {"connect_timeout", "3"},
    {"tcp_user_timeout", "5000"},
    {"keepalives_idle", "2"},
    {"keepalives_interval", "1"},
    {"keepalives_count", "3"},
    {"application_name", "tactus"},
}};

}  // namespace

std::string PlaceOf(std::string_view uri) {
  const std::size_t scheme = uri.find("://");
  std::string_view rest = scheme == std::string_view::npos ? uri : uri.substr(scheme + 3);
  rest = rest.substr(0, rest.find('?'));
  const std::string_view authority = rest.substr(0, rest.find('/'));
  const std::size_t user = authority.rfind('@');
  if (user != std::string_view::npos) rest.remove_prefix(user + 1);
  return "postgresql " + std::string(rest);
}

std::string WithLimits(std::string_view uri) {
  std::string text(uri);
  const std::size_t query = uri.find('?');
  const std::string_view said = query == std::string_view::npos ? "" : uri.substr(query);
  char before = query == std::string_view::npos ? '?' : '&';
  for (const auto& [key, value] : kLimits) {
    if (said.find(std::string(key) + "=") != std::string_view::npos) continue;
    text += before;
    text.append(key).append("=").append(value);
    before = '&';
  }
  return text;
}

}  // namespace tactus::knowledge
