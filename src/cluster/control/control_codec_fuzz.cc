// Any bytes as a message of a connection: read or refused, and what is read is the same after it
// was written and read again.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "cluster/control/codec.h"
#include "control.pb.h"

namespace {

template <class Wire>
void Try(const std::uint8_t* data, std::size_t size) {
  Wire wire;
  if (!wire.ParseFromArray(data, static_cast<int>(size))) return;
  const auto message = tactus::Decode(wire);
  if (!message) return;
  Wire again;
  tactus::Encode(*message, again);
  const auto same = tactus::Decode(again);
  CHECK(same, "what was read can be sent");
  Wire twice;
  tactus::Encode(*same, twice);
  CHECK(again.SerializeAsString() == twice.SerializeAsString(), "and stays the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Try<tactus::control::FromNode>(data, size);
  Try<tactus::control::ToNode>(data, size);
  Try<tactus::control::Cluster>(data, size);
  return 0;
}
