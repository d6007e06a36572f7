// The page on which a browser shows a stream.
#pragma once

#include <string>
#include <string_view>

namespace tactus {

// HTML with the stream's pictures, its counters each second and its last answer. `name` is a
// stream's, so it needs no escapes.
std::string StreamPage(std::string_view name);

}  // namespace tactus
