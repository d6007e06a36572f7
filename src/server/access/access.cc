#include "server/access/access.h"

#include <array>
#include <cstddef>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include "base/host_port.h"

namespace tactus {
namespace {

// The scheme's name in any case, then blanks (RFC 7235); empty where it is another scheme.
std::string_view TokenIn(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer";
  if (authorization.size() <= kScheme.size() || authorization[kScheme.size()] != ' ') return {};
  for (std::size_t i = 0; i < kScheme.size(); ++i) {
    if ((authorization[i] | 0x20) != kScheme[i]) return {};
  }
  authorization.remove_prefix(kScheme.size());
  const std::size_t begin = authorization.find_first_not_of(' ');
  return begin == authorization.npos ? std::string_view() : authorization.substr(begin);
}

// Names are not looked up: what they stand for may change.
bool IsIpAddress(const std::string& address) {
  std::array<std::byte, sizeof(in6_addr)> either{};
  return inet_pton(AF_INET, address.c_str(), either.data()) == 1 ||
         inet_pton(AF_INET6, address.c_str(), either.data()) == 1;
}

}  // namespace

Access::Access(AccessOptions options, Warn warn)
    : options_(std::move(options)), warn_(std::move(warn)) {}

Expected<std::shared_ptr<Access>> Access::Open(AccessOptions options, Warn warn) {
  const bool certificate = !options.tls.certificate.empty();
  if (certificate != !options.tls.key.empty()) {
    return InvalidArgument("--tls-cert and --tls-key belong together: give both");
  }
  if (!certificate && !options.tls.client_ca.empty()) {
    return InvalidArgument("--tls-client-ca needs TLS: give --tls-cert and --tls-key too");
  }
  std::shared_ptr<Access> access(new Access(std::move(options), std::move(warn)));
  if (access->has_tls()) {
    if (Status read = access->ReadCertificates(); !read) return std::unexpected(read.error());
  }
  if (access->has_tokens()) {
    if (Status read = access->ReadTokens(); !read) return std::unexpected(read.error());
  }
  return access;
}

Access::TlsState Access::StateOfTls() const {
  return {StateOf(options_.tls.certificate), StateOf(options_.tls.key),
          StateOf(options_.tls.client_ca)};
}

// The state is taken before the file is read: what is written meanwhile is read again.
Status Access::ReadCertificates() {
  tls_state_ = StateOfTls();
  auto read = ReadTls(options_.tls);
  if (!read) return std::unexpected(std::move(read.error()));
  tls_.store(std::make_shared<const TlsMaterial>(*std::move(read)));
  return {};
}

Status Access::ReadTokens() {
  token_state_ = StateOf(options_.tokens);
  const auto text = ReadSmallFile(options_.tokens);
  if (!text) return std::unexpected(text.error());
  auto list = TokenList::Parse(*text, options_.tokens.string());
  if (!list) return std::unexpected(std::move(list.error()));
  tokens_.store(std::make_shared<const TokenList>(*std::move(list)));
  return {};
}

void Access::Refresh() {
  if (has_tls() && StateOfTls() != tls_state_) {
    const Status read = ReadCertificates();
    warn_(read ? "TLS: certificate and key were read again"
               : "TLS: the old certificate stays in use: " + read.error().message);
  }
  if (has_tokens() && StateOf(options_.tokens) != token_state_) {
    const Status read = ReadTokens();
    warn_(read ? "tokens: the file was read again"
               : "tokens: the old ones stay in force: " + read.error().message);
  }
}

Admission Access::Admit(Scope needed, std::string_view authorization) const {
  using Outcome = Admission::Outcome;
  if (needed == Scope::kOpen || !has_tokens()) return {};
  const std::string_view token = TokenIn(authorization);
  if (token.empty()) {
    return {Outcome::kNoToken, {}, "this server wants a token: Authorization: Bearer TOKEN"};
  }
  const auto tokens = tokens_.load();
  const TokenList::Bearer* bearer = tokens->Find(token);
  if (bearer == nullptr) return {Outcome::kUnknownToken, {}, "the token is not known here"};
  if (!bearer->Has(needed)) {
    return {Outcome::kLacksScope, bearer->name,
            fmt::format("the token lacks the scope '{}'", Name(needed))};
  }
  return {Outcome::kAdmitted, bearer->name, {}};
}

Status CheckListening(std::string_view address, bool tls, bool tokens, bool insecure) {
  if (!IsIpAddress(std::string(address))) {
    return InvalidArgument(
        fmt::format("--address {}: is no IP address; give one, such as 127.0.0.1 (this machine "
                    "only) or 0.0.0.0 (every network that it is in)",
                    address));
  }
  if (insecure || IsThisMachine(address)) return {};
  if (tls && tokens) return {};
  const char* const lacks = tls      ? "--tokens"
                            : tokens ? "--tls-cert and --tls-key"
                                     : "--tls-cert, --tls-key and --tokens";
  return InvalidArgument(
      fmt::format("--address {} is beyond this machine, where others could read and change what "
                  "is served: give {}, or say --insecure where the network in front of it keeps "
                  "strangers out (docs/reference/security.md)",
                  address, lacks));
}

}  // namespace tactus
