// Any bytes as a message of a site's peer: decoded or refused; what is decoded, a scheduler takes,
// and it says the same when it is sent on.
#include <cstdint>

#include "base/check.h"
#include "cluster/site/wire.h"
#include "site.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tactus;
  site::FromPeer from;
  if (from.ParseFromArray(data, static_cast<int>(size))) {
    if (const auto message = Decode(from, kStart + Seconds(1))) {
      site::FromPeer again;
      Encode(*message, kStart + Seconds(1), again);
      CHECK(Decode(again, kStart + Seconds(1)).has_value(), "what was sound is sound when sent on");
    }
  }
  site::ToPeer to;
  if (to.ParseFromArray(data, static_cast<int>(size))) {
    if (const auto message = Decode(to)) {
      site::ToPeer again;
      Encode(*message, again);
      CHECK(Decode(again).has_value(), "what was sound is sound when sent on");
    }
  }
  return 0;
}
