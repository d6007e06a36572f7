// What a device is, asked of the driver.
#pragma once

#include <functional>
#include <string>

#include "base/expected.h"
#include "core/device_facts.h"
#include "engines/cuda/driver.h"
#include "engines/cuda/power_limit.h"

namespace tactus {

// Reads the facts of device `ordinal`, as the driver counts. An ordinal that is not there is an
// error that says how many are. `power_limit` gives watts for a UUID.
Expected<DeviceFacts> ReadFacts(
    const Driver& driver, int ordinal,
    const std::function<int(const std::string&)>& power_limit = [](const std::string& uuid) {
      return PowerLimitWatts(uuid);
    });

}  // namespace tactus
