// A file of streams, as somebody may have written it by hand.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "stream/kept_streams.h"
#include "stream/stream_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto all = tactus::KeptStreams::Parse({reinterpret_cast<const char*>(data), size});
  if (!all) return 0;
  for (const auto& [name, description] : *all) {
    CHECK(tactus::IsStreamName(name) && tactus::ParseStreamConfig(description),
          "what a file holds can be added");
  }
  return 0;
}
