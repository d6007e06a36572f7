// A profile as `tactus profile` shows it.
#pragma once

#include <string>

#include "workload/profile_file.h"

namespace tactus {

// A row for the smallest and the largest batch of each exit, aligned; what they take on a device in
// copies and in kernels, where the profile says it.
std::string ToTable(const ProfileFile& profile);

}  // namespace tactus
