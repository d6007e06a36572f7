// Which parts of a device go together: it is whole, or split in two (gpu-lets, Section 3.2).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace tactus {

// Which of `shares`, parts of a device in (0, 1], a device has left beside `part`. Shares are
// written rounded, 33.3 and 66.6 % say: what is up to half a percent less than the rest is the rest
// too, and of several such the largest. Nothing where there is none.
std::optional<std::size_t> RestOf(std::span<const double> shares, double part);

// The first of `shares` below the whole that has no rest among them, so that no planner ever splits
// a device there, with the remedy; nothing where all have one.
std::optional<std::string> WhyNeverSplit(std::span<const double> shares);

}  // namespace tactus
