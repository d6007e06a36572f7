#include "engines/onnxruntime/weights_beside.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <sys/stat.h>

#include "base/fnv.h"
#include "base/onnx_walk.h"
#include "base/whole_file.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kKey = 1;
constexpr std::uint64_t kValue = 2;
constexpr std::uint64_t kLongestText = 4096;
struct WeightsNames {
  std::set<std::string> names;
  bool inner = false;
};

// The values of "location" in all tensors of the graph.
WeightsNames NamesIn(const fs::path& graph, std::uint64_t size) {
  std::ifstream file(graph, std::ios::binary);
  OnnxWalk walk(file);
  WeightsNames into;
  std::string key;  // of the entry, which stands before its value
  walk.Run(size, [&](const OnnxWalk::Field& field) {
    if (field.of != OnnxMessage::kEntry || field.length > kLongestText) return;
    std::string text = walk.Text(field);
    if (field.number == kKey) {
      key = std::move(text);
    } else if (field.number == kValue && std::exchange(key, "") == "location") {
      into.names.insert(std::move(text));
      into.inner = into.inner || field.inner;
    }
  });
  return into;
}

// The library refuses what lies elsewhere: weights of strangers' graphs are no way to read any
// file. A name that leads up and down again may lead elsewhere over a link.
bool BelowFolder(const fs::path& folder, const fs::path& name) {
  const fs::path straight = name.lexically_normal();
  if (straight.is_absolute() || straight.empty() || *straight.begin() == "..") return false;
  std::error_code failed;
  return straight == name || fs::equivalent(folder / straight, folder / name, failed);
}

}  // namespace

WeightsBeside ReadWeightsBeside(const fs::path& graph) {
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(graph, failed);
  if (failed) return {};
  const WeightsNames found = NamesIn(graph, size);
  const std::set<std::string>& names = found.names;
  WeightsBeside weights{.inner = found.inner};
  for (const std::string& name : names) weights.left.push_back(graph.parent_path() / name);
  bool inner = found.inner;
  std::size_t room = kMostWeightsRead;
  std::vector<WeightsFile> files;
  for (const std::string& name : names) {
    const fs::path path = graph.parent_path() / name;
    const std::uintmax_t bytes = fs::file_size(path, failed);
    if (failed || !BelowFolder(graph.parent_path(), name) || bytes > room) return weights;
    // The library finds what it is given by straight names only.
    inner = inner || fs::path(name).lexically_normal() != fs::path(name);
    room -= bytes;
    auto text = ReadWhole(path, "weights");
    if (!text) return weights;
    files.push_back({name, *std::move(text)});
  }
  return {.read = std::move(files), .inner = inner, .left = {}};
}

std::uint64_t FactsOf(const fs::path& file) {
  struct stat s {};
  if (stat(file.c_str(), &s) != 0) return kFnvStart;
  const std::uint64_t facts[] = {
      s.st_dev,
      s.st_ino,
      static_cast<std::uint64_t>(s.st_size),
      static_cast<std::uint64_t>(s.st_mtim.tv_sec),
      static_cast<std::uint64_t>(s.st_mtim.tv_nsec),
      static_cast<std::uint64_t>(s.st_ctim.tv_sec),
      static_cast<std::uint64_t>(s.st_ctim.tv_nsec),
  };
  return Fnv1a({reinterpret_cast<const char*>(facts), sizeof facts});
}

std::uint64_t ContentsOf(const fs::path& graph, const WeightsBeside& weights) {
  std::uint64_t hash = kFnvStart;
  std::ifstream file(graph, std::ios::binary);
  std::vector<char> part(std::size_t{1} << 18);
  while (file.read(part.data(), static_cast<std::streamsize>(part.size())) || file.gcount() > 0) {
    hash = Fnv1a({part.data(), static_cast<std::size_t>(file.gcount())}, hash);
  }
  for (const WeightsFile& each : weights.read) hash = Fnv1a(each.bytes, Fnv1a(each.name, hash));
  for (const fs::path& each : weights.left) {
    const std::uint64_t facts = FactsOf(each);
    hash = Fnv1a({reinterpret_cast<const char*>(&facts), sizeof facts}, hash);
  }
  return hash;
}

}  // namespace tactus
