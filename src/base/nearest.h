// The name that a user may have meant by one that does not exist.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tactus {

// " (did you mean 'fifo'?)" for "fif": the known name that the fewest changed letters lead to, at
// most a third of the word's, or, where there is none, the shortest that begins with the word.
// Empty where nothing is near.
std::string DidYouMean(std::string_view word, std::span<const std::string> known);

}  // namespace tactus
