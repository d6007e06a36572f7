#include "server/access/token_list.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

namespace tactus {
namespace {

constexpr std::size_t kShortest = 16;
constexpr std::size_t kLongest = 1024;

std::array<unsigned char, 32> SumOf(std::string_view token) {
  std::array<unsigned char, 32> sum{};
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), sum.data());
  return sum;
}

// The next word of `rest`, which then begins behind it; empty at the end.
std::string_view NextWord(std::string_view& rest) {
  constexpr std::string_view kBlank = " \t\r";
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlank), rest.size()));
  const std::string_view word = rest.substr(0, rest.find_first_of(kBlank));
  rest.remove_prefix(word.size());
  return word;
}

Expected<std::uint8_t> ParseScopes(std::string_view words) {
  std::uint8_t scopes = 0;
  for (;;) {
    const std::size_t comma = words.find(',');
    const auto scope = ParseScope(words.substr(0, comma));
    if (!scope)
      return InvalidArgument(
          "each scope must be infer, read or admin, with commas and no spaces between them");
    scopes |= static_cast<std::uint8_t>(*scope);
    if (comma == words.npos) return scopes;
    words.remove_prefix(comma + 1);
  }
}

Expected<TokenList::Bearer> ParseLine(std::string_view line) {
  const std::string_view name = NextWord(line);
  const std::string_view words = NextWord(line);
  const std::string_view token = NextWord(line);
  if (token.empty() || !NextWord(line).empty()) {
    return InvalidArgument("a line is NAME SCOPE[,SCOPE...] TOKEN");
  }
  const auto scopes = ParseScopes(words);
  if (!scopes) return std::unexpected(scopes.error());
  const bool visible = std::ranges::all_of(token, [](char c) { return c > ' ' && c < 0x7F; });
  if (token.size() < kShortest || token.size() > kLongest || !visible) {
    return InvalidArgument(
        fmt::format("a token has {} to {} visible ASCII characters; `openssl rand -hex 32` makes "
                    "one",
                    kShortest, kLongest));
  }
  return TokenList::Bearer{std::string(name), *scopes, SumOf(token)};
}

}  // namespace

Expected<TokenList> TokenList::Parse(std::string_view text, std::string_view where) {
  TokenList list;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    std::string_view probe = line;
    const std::string_view first = NextWord(probe);
    if (first.empty() || first.starts_with('#')) continue;
    auto bearer = ParseLine(line);
    if (!bearer) {
      return InvalidArgument(fmt::format("{}:{}: {}", where, number, bearer.error().message));
    }
    for (const Bearer& other : list.bearers_) {
      if (other.name != bearer->name && other.sum != bearer->sum) continue;
      return InvalidArgument(
          fmt::format("{}:{}: the name or the token stands in another line too", where, number));
    }
    list.bearers_.push_back(*std::move(bearer));
  }
  if (list.bearers_.empty()) {
    return InvalidArgument(
        fmt::format("{}: no tokens; a line is NAME SCOPE[,SCOPE...] TOKEN", where));
  }
  return list;
}

const TokenList::Bearer* TokenList::Find(std::string_view token) const {
  const auto sum = SumOf(token);
  const Bearer* found = nullptr;
  for (const Bearer& bearer : bearers_) {
    if (CRYPTO_memcmp(bearer.sum.data(), sum.data(), sum.size()) == 0) found = &bearer;
  }
  return found;
}

}  // namespace tactus
