// The messages of a site as they stand on the wire. Deadlines travel as time left, so no two clocks
// are compared. Whatever the bytes say, decoding yields a message whose numbers are in range, or an
// error.
#pragma once

#include "base/expected.h"
#include "site/messages.h"

namespace tactus::site {
class FromPeer;
class ToPeer;
}  // namespace tactus::site

namespace tactus {

void Encode(const FromPeer& message, TimePoint now, site::FromPeer& wire);
Expected<FromPeer> Decode(const site::FromPeer& wire, TimePoint now);

void Encode(const ToPeer& message, site::ToPeer& wire);
Expected<ToPeer> Decode(const site::ToPeer& wire);

}  // namespace tactus
