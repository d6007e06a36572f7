// Any bytes as a file of state: read or refused with its name, never a crash; what is read is the
// same after it was written and read again.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "cluster/control/state_file.h"

namespace {

template <class Wire>
void Try(std::string_view text) {
  const auto kept = tactus::ParseState<Wire>(text, "fuzz");
  CHECK(kept || kept.error().message.starts_with("fuzz:"), "an error names its file");
  if (!kept) return;
  const auto again = tactus::ParseState<Wire>(tactus::StateText<Wire>(*kept), "fuzz");
  CHECK(again && tactus::StateText<Wire>(*again) == tactus::StateText<Wire>(*kept),
        "what is kept is read again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Try<tactus::control::NodeFile>(text);
  Try<tactus::control::LeaderFile>(text);
  Try<tactus::control::WorkerFile>(text);
  Try<tactus::control::RoutesFile>(text);
  Try<tactus::control::LinksFile>(text);
  return 0;
}
