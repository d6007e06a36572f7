#include "stream/source_address.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace tactus {

std::string Shown(std::string_view source) {
  const std::size_t scheme = source.find("://");
  if (scheme == source.npos) return std::string(source);
  const std::size_t host = scheme + 3;
  const std::size_t path = std::min(source.find_first_of("/?#", host), source.size());
  const std::size_t at = source.substr(0, path).rfind('@');
  if (at == source.npos || at < host) return std::string(source);
  return fmt::format("{}***{}", source.substr(0, host), source.substr(at));
}

Status CheckSource(std::string_view source) {
  if (!IsLive(source)) return {};
  constexpr std::array<std::string_view, 4> kSchemes = {"rtsp", "rtsps", "http", "https"};
  const std::string_view scheme = source.substr(0, source.find("://"));
  if (std::ranges::find(kSchemes, scheme) != kSchemes.end()) return {};
  return InvalidArgument(fmt::format(
      "the source '{}': no such kind; give a path, or an rtsp, rtsps, http or https URL",
      Shown(source)));
}

}  // namespace tactus
