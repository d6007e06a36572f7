// Files that lie where a graph should and are none: found by how they begin, before a library reads
// all of one.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tactus {

// What the file is instead of a graph, and what to do about it; empty where it may be one. Quick,
// whatever its size.
std::string WhyNoGraph(const std::filesystem::path& path);

// The same by the file's first bytes, all of them where there are fewer than kHeadBytes, and by the
// end of its name (".pt").
inline constexpr std::size_t kHeadBytes = 4096;
std::string WhyNoGraph(std::string_view head, std::string_view extension = "");

}  // namespace tactus
