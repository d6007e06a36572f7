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
#include "base/whole_file.h"
#include "engines/onnxruntime/onnx_messages.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kKey = 1;
constexpr std::uint64_t kValue = 2;
constexpr std::uint64_t kLongestText = 4096;
// No graph has so many outside of its weights. What is no graph may seem to, for gigabytes.
constexpr std::uint64_t kMostFields = 16'000'000;

struct WeightsNames {
  std::set<std::string> names;
  bool inner = false;
};

// Walks the messages of a protobuf file and reads nothing of the fields between: weights that lie
// in the graph itself may be large.
class ProtobufWalk {
 public:
  explicit ProtobufWalk(const fs::path& path) : file_(path, std::ios::binary) {}

  // The values of "location" in all tensors of the message that ends at `end`; `inner` as
  // WeightsBeside has it.
  void Collect(OnnxMessage message, std::uint64_t end, bool inner, WeightsNames& into,
               int depth = 0) {
    if (depth > kDeepestOnnx) return file_.setstate(std::ios::failbit);
    std::string key;
    while (At() < end) {
      const std::uint64_t tag = Varint();
      if (tag >> 3 == 0 || ++fields_ > kMostFields) return file_.setstate(std::ios::failbit);
      const std::uint64_t kind = tag & 7;
      if (kind == 0) Varint();
      if (kind == 1 || kind == 5) file_.seekg(kind == 1 ? 8 : 4, std::ios::cur);
      if (kind != 2) {
        if (kind == 3 || kind == 4 || kind > 5) file_.setstate(std::ios::failbit);
        continue;
      }
      const std::uint64_t length = Varint();
      const std::uint64_t behind = At() + length;
      if (behind > end) return;
      const OnnxMessage child = OnnxChild(message, tag >> 3);
      if (message == OnnxMessage::kEntry && length <= kLongestText) {
        std::string text(length, '\0');
        file_.read(text.data(), static_cast<std::streamsize>(length));
        if (tag >> 3 == kKey) {
          key = std::move(text);
        } else if (tag >> 3 == kValue && key == "location") {
          into.names.insert(std::move(text));
          into.inner = into.inner || inner;
        }
      } else if (child != OnnxMessage::kOther) {
        const bool main = child == OnnxMessage::kGraph || child == OnnxMessage::kTensor ||
                          child == OnnxMessage::kEntry;
        Collect(child, behind, inner || !main, into, depth + 1);
      }
      if (file_) file_.seekg(static_cast<std::streamoff>(behind));
    }
  }

 private:
  // The end of everything where the file does not go on.
  std::uint64_t At() {
    const std::streamoff at = file_ ? static_cast<std::streamoff>(file_.tellg()) : -1;
    return at < 0 ? UINT64_MAX : static_cast<std::uint64_t>(at);
  }
  std::uint64_t Varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const int byte = file_.get();
      if (byte < 0) return 0;
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    file_.setstate(std::ios::failbit);
    return 0;
  }

  std::ifstream file_;
  std::uint64_t fields_ = 0;
};

// The library refuses what lies elsewhere: weights of strangers' graphs are no way to read any
// file.
bool BelowFolder(const fs::path& name) {
  return name.is_relative() && std::ranges::find(name, "..") == name.end();
}

}  // namespace

WeightsBeside ReadWeightsBeside(const fs::path& graph) {
  std::error_code failed;
  const std::uintmax_t size = fs::file_size(graph, failed);
  if (failed) return {};
  WeightsNames found;
  ProtobufWalk(graph).Collect(OnnxMessage::kModel, size, false, found);
  const std::set<std::string>& names = found.names;
  WeightsBeside weights{.inner = found.inner};
  for (const std::string& name : names) weights.left.push_back(graph.parent_path() / name);
  std::size_t room = kMostWeightsRead;
  std::vector<WeightsFile> files;
  for (const std::string& name : names) {
    const fs::path path = graph.parent_path() / name;
    const std::uintmax_t bytes = fs::file_size(path, failed);
    if (failed || !BelowFolder(name) || bytes > room) return weights;
    room -= bytes;
    auto text = ReadWhole(path, "weights");
    if (!text) return weights;
    files.push_back({name, *std::move(text)});
  }
  return {.read = std::move(files), .inner = found.inner, .left = {}};
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
