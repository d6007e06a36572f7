// What results depend on; its hash begins their files, which begin anew when it changes.
#pragma once

#include <filesystem>
#include <string>

namespace tactus {

// Empty where the file cannot be read.
std::string FileText(const std::filesystem::path& path);

}  // namespace tactus
