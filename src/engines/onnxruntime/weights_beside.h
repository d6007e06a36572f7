// The files beside a graph that hold its weights (ONNX: external data).
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace tactus {

struct WeightsFile {
  std::string name;  // as the graph says it, from the graph's folder
  std::string bytes;
};

// All of them together beyond this are not read: loading needs their size three times for a moment.
inline constexpr std::size_t kMostWeightsRead = std::size_t{1} << 30;

// The weight files in or below the graph's folder that its main graph names. None where there are
// none, where one cannot be read or the graph is damaged: the library finds that too, and says so
// better. None where they are larger than kMostWeightsRead: the library maps them.
std::vector<WeightsFile> ReadWeightsBeside(const std::filesystem::path& graph);

}  // namespace tactus
