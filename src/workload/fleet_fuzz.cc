// Whatever a file of a fleet holds, it is read or refused with its name.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "workload/fleet_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto fleet = tactus::ParseFleet(text, "fuzz");
  CHECK(fleet || fleet.error().message.starts_with("fuzz:"), "an error names its file");
  return 0;
}
