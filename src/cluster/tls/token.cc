#include "cluster/tls/token.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include "base/check.h"
#include "cluster/tls/authority.h"

namespace tactus {
namespace {

constexpr std::size_t kChanceBytes = 16;
constexpr std::size_t kMostToken = 512;
constexpr char kKeyFor[] = "tactus cluster token ";  // the authority's key has other uses

// What stands before the signature, and its parts.
struct TokenText {
  std::string_view signed_part;
  std::string_view signature;
  std::string node;
  std::chrono::sys_seconds expires{};
};

std::optional<TokenText> Parse(std::string_view token) {
  if (token.size() > kMostToken) return std::nullopt;
  const std::size_t signature = token.rfind('.');
  if (signature == token.npos || signature == 0) return std::nullopt;
  const std::size_t chance = token.rfind('.', signature - 1);
  if (chance == token.npos || chance == 0) return std::nullopt;
  const std::size_t expiry = token.rfind('.', chance - 1);
  if (expiry == token.npos || expiry == 0) return std::nullopt;
  std::int64_t seconds = 0;
  const char* const end = token.data() + chance;
  const auto [at, error] = std::from_chars(token.data() + expiry + 1, end, seconds);
  if (error != std::errc{} || at != end) return std::nullopt;
  return TokenText{token.substr(0, signature), token.substr(signature + 1),
                   std::string(token.substr(0, expiry)),
                   std::chrono::sys_seconds(std::chrono::seconds(seconds))};
}

std::string SignatureOf(std::string_view text, const std::string& secret) {
  const std::string key = kKeyFor + secret;
  std::array<unsigned char, SHA256_DIGEST_LENGTH> sum{};
  unsigned size = 0;
  CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(text.data()), text.size(), sum.data(),
             &size) != nullptr,
        "OpenSSL has SHA-256");
  return HexOf(sum.data(), size);
}

}  // namespace

Expected<std::string> MakeToken(const std::filesystem::path& folder, const std::string& node,
                                std::chrono::seconds valid) {
  if (Status named = CheckNodeName(node); !named) return std::unexpected(named.error());
  const auto secret = AuthoritySecret(folder);
  if (!secret) return std::unexpected(secret.error());
  std::array<unsigned char, kChanceBytes> chance{};
  CHECK(RAND_bytes(chance.data(), static_cast<int>(chance.size())) == 1, "there is chance");
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const std::string text = node + "." + std::to_string((now + valid).time_since_epoch().count()) +
                           "." + HexOf(chance.data(), chance.size());
  return text + "." + SignatureOf(text, *secret);
}

Expected<Token> ReadToken(const std::filesystem::path& folder, const std::string& token,
                          std::chrono::sys_seconds now) {
  const auto secret = AuthoritySecret(folder);
  if (!secret) return std::unexpected(secret.error());
  const auto text = Parse(token);
  const std::string wanted = text ? SignatureOf(text->signed_part, *secret) : "";
  if (!text || text->signature.size() != wanted.size() ||
      CRYPTO_memcmp(text->signature.data(), wanted.data(), wanted.size()) != 0) {
    return InvalidArgument(
        "the token was not made by this cluster's authority; tactus cluster token makes one");
  }
  if (text->expires < now) {
    return InvalidArgument("the token of node '" + text->node +
                           "' has expired; tactus cluster token makes another");
  }
  std::array<unsigned char, SHA256_DIGEST_LENGTH> sum{};
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), sum.data());
  return Token{text->node, text->expires, HexOf(sum.data(), sum.size())};
}

std::string NodeOfToken(const std::string& token) {
  const auto text = Parse(token);
  return text ? text->node : "";
}

}  // namespace tactus
