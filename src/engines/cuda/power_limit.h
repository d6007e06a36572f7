// The power that a device may draw, which decides its clocks under load: of NVIDIA's management
// library, where the machine has it.
#pragma once

#include <filesystem>
#include <string>

namespace tactus {

struct Nvml;

// The power limit of the device with this UUID ("GPU-..."), in watts, as enforced now; 0 where the
// library is missing or does not tell. The library stays open.
int PowerLimitWatts(const std::string& uuid,
                    const std::filesystem::path& library = "libnvidia-ml.so.1");
int PowerLimitWatts(const std::string& uuid, const Nvml& nvml);

}  // namespace tactus
