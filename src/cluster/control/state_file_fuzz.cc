// Any bytes as a file of state: read or refused with its name, never a crash; what is read is the
// same after it was written and read again.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "cluster/control/state_file.h"

namespace {

template <class Parse>
void Try(Parse parse, std::string_view text) {
  const auto kept = parse(text, "fuzz");
  CHECK(kept || kept.error().message.starts_with("fuzz:"), "an error names its file");
  if (!kept) return;
  const auto again = parse(TextOf(*kept), "fuzz");
  CHECK(again && TextOf(*again) == TextOf(*kept), "what is kept is read again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Try(tactus::ParseNodeFile, text);
  Try(tactus::ParseLeaderFile, text);
  Try(tactus::ParseWorkerFile, text);
  Try(tactus::ParseRoutesFile, text);
  Try(tactus::ParseLinksFile, text);
  return 0;
}
