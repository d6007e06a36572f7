// Any bytes as a token or as a request for a certificate, which strangers may send: read or
// refused.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "cluster/tls/authority.h"
#include "cluster/tls/token.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string node = tactus::NodeOfToken(text);
  CHECK(node.empty() || text.starts_with(node + "."), "the node is what the token begins with");
  const auto sum = tactus::SumOfKey(text);
  CHECK(!sum || sum->size() == 64, "a sum is 256 bits in hex");
  return 0;
}
