// A stream's description, as anybody may send it who may add one.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "stream/stream_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)tactus::IsStreamName(text);
  const auto config = tactus::ParseStreamConfig(text);
  if (!config) return 0;
  // What was accepted is written so that it is accepted again.
  const std::string written = tactus::ToJson(*config);
  const auto again = tactus::ParseStreamConfig(written);
  CHECK(again && tactus::ToJson(*again) == written, "a configuration reads what it writes");
  return 0;
}
