#include "reproduction/origin.h"

#include <fstream>
#include <sstream>

namespace tactus {

std::string FileText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace tactus
