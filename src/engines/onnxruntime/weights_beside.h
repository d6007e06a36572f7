// The files beside a graph that hold its weights (ONNX: external data).
#pragma once

#include <cstddef>
#include <cstdint>
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

struct WeightsBeside {
  std::vector<WeightsFile> read;
  // A branch, a loop, an attribute or a function names some, or a name is none of the shortest
  // ("./w.bin"): they go into the graph.
  bool inner = false;
  // The library reads or maps these. It finds where one is missing or the graph is damaged, and
  // says so better.
  std::vector<std::filesystem::path> left;
};

// The weight files that the graph names. All are read or none: none where one cannot be, or
// lies elsewhere than in or below the graph's folder, or they are larger than kMostWeightsRead.
WeightsBeside ReadWeightsBeside(const std::filesystem::path& graph);

// The hash of what a load of `graph` reads: of contents, but of files that are left to the library
// what the system says of them.
std::uint64_t ContentsOf(const std::filesystem::path& graph, const WeightsBeside& weights);
// What the system says of a file, as a hash: another where it is written to, or replaced.
std::uint64_t FactsOf(const std::filesystem::path& file);

}  // namespace tactus
