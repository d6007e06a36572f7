// The machine that a profile was measured on. Latencies of another machine are wrong here, and a
// server that believes them misses deadlines without knowing why.
#pragma once

#include <string>

#include "base/expected.h"
#include "workload/profile_file.h"

namespace tactus {

// This machine with an engine (EngineTraits::name) that runs a batch on `threads`. The fingerprint
// covers what decides latency: the processor, its cores, the engine, its version and threads; not
// the host's name or the kernel.
Machine ThisMachine(const std::string& engine, int threads = 1);

// How the machine that `profile` was measured on differs from `machine`; empty where it does not. A
// profile that was derived or imported was measured on no machine that is known.
std::string MachineDifference(const ProfileFile& profile, const Machine& machine);

// An error unless `profile` was measured on `machine`, or `allow` is set; it says how they differ
// and what to do.
Status CheckMachine(const ProfileFile& profile, const Machine& machine, bool allow);

}  // namespace tactus
