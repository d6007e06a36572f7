// A token admits one node to a cluster. It names the node and when it ends, and is signed with the
// authority's key, so every controller that has the key knows one when it sees it:
//
//   NODE.SECONDS SINCE 1970.32 HEX DIGITS OF CHANCE.64 OF THE SIGNATURE (HMAC-SHA-256)
//
// That it is used once, somebody has to write down: its sum, by which nobody gets in.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "base/expected.h"

namespace tactus {

// kInvalidArgument for a name that no node may have, kNotFound where there is no authority's key.
Expected<std::string> MakeToken(const std::filesystem::path& folder, const std::string& node,
                                std::chrono::seconds valid);

struct Token {
  std::string node;
  std::chrono::sys_seconds expires{};
  std::string sum;  // of the whole text, in hex
};
// kInvalidArgument: it is not of the authority in that folder, or had expired at `now`. Errors
// never have a token in them.
Expected<Token> ReadToken(const std::filesystem::path& folder, const std::string& token,
                          std::chrono::sys_seconds now);

// The node that it names, whoever signed it; empty: it is no token.
std::string NodeOfToken(const std::string& token);

}  // namespace tactus
