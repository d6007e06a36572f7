// What is said of two sets of models that ought to be one.
#pragma once

#include <span>
#include <string>

namespace tactus {

// "it knows 'a', not served here; it does not know 'b'", of what a file knows and what is served
// here, in whatever order; empty where they are the same.
std::string HowNamesDiffer(std::span<const std::string> known, std::span<const std::string> here);

}  // namespace tactus
