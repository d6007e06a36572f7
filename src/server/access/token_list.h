// The tokens of a --tokens file: who may do what.
//
//   # one bearer a line: NAME SCOPE[,SCOPE...] TOKEN
//   router   infer,read    TOKEN
//   operator read,admin    TOKEN
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "server/access/scope.h"

namespace tactus {

// Holds SHA-256 sums of the tokens, never the tokens.
class TokenList {
 public:
  struct Bearer {
    std::string name;
    std::uint8_t scopes = 0;  // of Scope, together
    std::array<unsigned char, 32> sum{};

    bool Has(Scope scope) const { return (scopes & static_cast<std::uint8_t>(scope)) != 0; }
  };

  // InvalidArgument with the line, and never with the token: `where` names the file. A token has 16
  // to 1,024 visible characters; names and tokens differ from each other.
  static Expected<TokenList> Parse(std::string_view text, std::string_view where);

  // Who bears `token`; null: nobody. Compares with every entry in constant time, so that the time
  // it takes says neither which one matched nor how nearly.
  const Bearer* Find(std::string_view token) const;

  std::size_t size() const { return bearers_.size(); }

 private:
  std::vector<Bearer> bearers_;
};

}  // namespace tactus
