// Shares of a device as numbers of its multiprocessors (SMs). A device gives them out in groups;
// what is left over beside whole groups belongs to nobody who has a share.
#pragma once

#include <span>
#include <vector>

#include "base/expected.h"

namespace tactus {

// The smallest part that can be split off: at least `least` SMs, in multiples of `step`.
struct SmGrain {
  int least = 0;
  int step = 0;
  // SMs of a group that parts are made of.
  int group() const { return (least + step - 1) / step * step; }
};

// By compute capability (90 is 9.0), as CUDA's documentation of green contexts has it: 2 and 2
// before 8.0, 4 and 2 before 9.0, then 8 and 8.
SmGrain GrainOf(int capability);

// Groups [first, first + count) of a device.
struct SmPart {
  int first = 0;
  int count = 0;
  bool operator==(const SmPart&) const = default;
};

// The part of a lane that has `fraction` of a device of `groups` groups, behind lanes that have
// `offset` of it together: from the group nearest to `offset` to the one nearest to its end, so
// that lanes which lie side by side share no group and leave none out. kInvalidArgument for what is
// no share, and for one that is less than a group.
Expected<SmPart> PartOf(double offset, double fraction, int groups);

// The same for all lanes of a layout, one behind the other. The error names the lane, the number of
// groups and what the smallest share is.
Expected<std::vector<SmPart>> Divide(std::span<const double> fractions, int groups);

}  // namespace tactus
