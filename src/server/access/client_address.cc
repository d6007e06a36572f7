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

}  // namespace tactus
