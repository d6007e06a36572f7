// What results depend on, as a number: files begin anew when it changes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace tactus {

// FNV-1a, 64 bits; `hash` continues an earlier one.
std::uint64_t Hash(std::string_view text, std::uint64_t hash = 14695981039346656037ull);
// Empty where the file cannot be read.
std::string FileText(const std::filesystem::path& path);

}  // namespace tactus
