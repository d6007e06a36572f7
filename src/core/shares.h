// Which parts of a device go together: it is whole, or split in two (gpu-lets, Section 3.2).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace tactus {

// Which of `shares`, parts of a device in (0, 1], a device has left beside `part`. Shares are
// written rounded, 33.3 and 66.6 % say: what is up to half a percent less than the complement is
// the complement too, and of several such the largest. Nothing where there is none.
std::optional<std::size_t> ComplementOf(std::span<const double> shares, double part);

// Why the first of `shares` below the whole is never used, with the remedy: its complement is not
// among them, so no planner splits a device there. Nothing where each has its complement.
std::optional<std::string> ExplainUnusableShare(std::span<const double> shares);

}  // namespace tactus
