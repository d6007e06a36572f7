#include "server/access/client_address.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <arpa/inet.h>

namespace tactus {
namespace {

template <int kFamily>
std::string TextOf(const unsigned char* bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(kFamily, bytes, text.data(), text.size()) != nullptr ? text.data() : "";
}

// What stands between `open` and `close`; empty where they do not.
std::string_view Between(std::string_view text, std::string_view open, std::string_view close) {
  const std::size_t begin = text.find(open);
  const std::size_t end = text.rfind(close);
  if (begin == text.npos || end == text.npos || end < begin + open.size()) return {};
  return text.substr(begin + open.size(), end - begin - open.size());
}

}  // namespace

std::string ClientAt(std::string_view address) {
  const std::string plain(address.substr(0, address.find('%')));  // without an interface
  std::array<unsigned char, 16> bytes{};
  if (inet_pton(AF_INET6, plain.c_str(), bytes.data()) != 1) return std::string(address);
  constexpr std::array<unsigned char, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::ranges::equal(kMapped, std::span(bytes).first(kMapped.size()))) {
    return TextOf<AF_INET>(bytes.data() + kMapped.size());
  }
  std::fill(bytes.begin() + 8, bytes.end(), 0);
  return TextOf<AF_INET6>(bytes.data());
}

std::string ClientAtGrpcPeer(std::string_view peer) {
  for (const auto& [open, close] : {std::pair("%5B", "%5D"), std::pair("[", "]")}) {
    if (const std::string_view inner = Between(peer, open, close); !inner.empty()) {
      return ClientAt(inner);
    }
  }
  const std::string_view inner = Between(peer, ":", ":");
  return ClientAt(inner.empty() ? peer : inner);
}

}  // namespace tactus
