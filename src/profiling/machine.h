// The machine that a profile was measured on. Latencies of another machine are wrong here, and a
// server that believes them misses deadlines without knowing why.
#pragma once

#include <optional>
#include <string>

#include "base/expected.h"
#include "core/device_facts.h"
#include "core/engine.h"
#include "workload/profile_file.h"

namespace tactus {

// This machine with an engine (EngineTraits::name) that runs a batch on `threads`, or on an
// device (EngineTraits::device). The fingerprint covers what decides latency: the
// processor, its cores, the engine, its version and threads, the device, its driver and power
// limit; not the host's name, the kernel or which of several devices of a kind it is.
Machine ThisMachine(const std::string& engine, int threads = 1,
                    const std::optional<DeviceFacts>& device = std::nullopt);
// The same, of an engine's traits; `share` is the part of its device that a lane has.
Machine ThisMachine(const EngineTraits& engine, int threads = 1, double share = 1);

// How the machine that `profile` was measured on differs from `machine`; empty where it does not. A
// profile that was derived or imported was measured on no machine that is known.
std::string MachineDifference(const ProfileFile& profile, const Machine& machine);

// An error unless `profile` was measured on `machine`, or `allow` is set; it says how they differ
// and what to do.
Status CheckMachine(const ProfileFile& profile, const Machine& machine, bool allow);

}  // namespace tactus
