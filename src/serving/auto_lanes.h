// `tactus serve --lanes auto`: how many lanes of how many threads the server has where nobody says
// it, from the processors that it may use and from what the profile says of its models
// (planners/lane_choice.h).
#pragma once

#include <string>
#include <vector>

#include "serving/serve_options.h"
#include "workload/profile_file.h"

namespace tactus {

// The options with lanes and threads that are numbers. Lanes that run on no processor of this
// machine (--device, emulated models) and those of a plan are as many as the options otherwise
// have: one. What was chosen says so itself in `chosen_lanes`.
ServeOptions WithLanes(ServeOptions options);

// With what the profile was to be measured for lanes of so many threads: as many as they have;
// where the lanes were chosen by what the profile knows of other threads, as many as it was
// measured with.
int ThreadsOfProfile(const ServeOptions& options, const ProfileFile& profile);

}  // namespace tactus
