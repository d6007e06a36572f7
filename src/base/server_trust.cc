#include "base/server_trust.h"

#include <algorithm>

#include "base/whole_file.h"

namespace tactus {

Expected<std::string> ReadAuthorities(const std::string& file) {
  auto text = ReadWhole(file, "file of certificates");
  if (text && text->find("-----BEGIN CERTIFICATE-----") == std::string::npos) {
    return InvalidArgument(file +
                           ": there is no certificate in it; give a PEM file with "
                           "\"-----BEGIN CERTIFICATE-----\"");
  }
  return text;
}

Expected<std::string> ReadToken(const std::string& file, const HostPort& to, bool has_tls) {
  if (!has_tls && !IsThisMachine(to.host)) {
    return InvalidArgument("the token would go to " + HostPortText(to.host, to.port) +
                           " without TLS, where others can read it; give the server's certificates "
                           "too (--ca)");
  }
  auto text = ReadWhole(file, "token");
  if (!text) return text;
  text->resize(std::min(text->find_first_of("\r\n"), text->size()));
  const auto fits = [](unsigned char c) { return c > 0x20 && c < 0x7f; };
  if (!text->empty() && std::ranges::all_of(*text, fits)) return text;
  return InvalidArgument(file +
                         ": its first line is no token: one word of printable ASCII characters");
}

}  // namespace tactus
