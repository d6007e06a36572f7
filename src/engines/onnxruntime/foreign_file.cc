#include "engines/onnxruntime/foreign_file.h"

#include <algorithm>
#include <cctype>
#include <fstream>

#include <fmt/format.h>

namespace tactus {
namespace {

constexpr std::string_view kExport = "export the model to ONNX and put that file here";
constexpr std::string_view kFromTensorFlow = "convert it to ONNX (tf2onnx) and put that file here";
constexpr std::string_view kFromTorch =
    "export the model to ONNX (torch.onnx.export) and put that file here";
constexpr std::string_view kUnpack = "unpack it and put the .onnx file here";
constexpr std::string_view kOtherEngine =
    "only its own runtime reads that; put the .onnx file here that it was made from";

// How a file begins.
struct Format {
  std::size_t at;
  std::string_view magic;
  std::string_view name;
  std::string_view remedy;
};
using namespace std::string_view_literals;
constexpr Format kFormats[] = {
    {0, "version https://git-lfs"sv, "a pointer of Git LFS",
     "fetch the file itself (git lfs pull)"},
    {0, "\x1f\x8b"sv, "compressed with gzip", kUnpack},
    {0, "BZh"sv, "compressed with bzip2", kUnpack},
    {0, "\xfd\x37zXZ\0"sv, "compressed with xz", kUnpack},
    {0, "\x28\xb5\x2f\xfd"sv, "compressed with zstd", kUnpack},
    {0, "7z\xbc\xaf\x27\x1c"sv, "a 7z archive", kUnpack},
    {257, "ustar"sv, "a tar archive", kUnpack},
    {0, "\x89HDF\r\n"sv, "HDF5, as Keras saves models", kFromTensorFlow},
    {4, "TFL3"sv, "a TensorFlow Lite model", kFromTensorFlow},
    {4, "ORTM"sv, "in ONNX Runtime's own format (.ort)", kOtherEngine},
    {8, "{\""sv, "safetensors, which are weights without a graph", kExport},
    {0, "GGUF"sv, "GGUF, as llama.cpp has models", kExport},
    {0, "\x89PNG"sv, "a picture (PNG)", "put the model's .onnx file here"},
    {0, "\xff\xd8\xff"sv, "a picture (JPEG)", "put the model's .onnx file here"},
    {0, "%PDF"sv, "a PDF document", "put the model's .onnx file here"},
    {0,
     "\x7f"
     "ELF"sv,
     "a program or a library", "put the model's .onnx file here"},
};

std::string Is(std::string_view name, std::string_view remedy) {
  return fmt::format("it is {}: {}", name, remedy);
}

bool Has(std::string_view head, std::string_view text) { return head.find(text) != head.npos; }

// An archive's first entries are named in its head. PyTorch's may have others in front.
std::string OfZip(std::string_view head, std::string_view extension) {
  const bool torch = extension == ".pt" || extension == ".pth" || extension == ".pt2";
  if (torch || Has(head, "data.pkl") || Has(head, "/byteorder") || Has(head, "/.format_version")) {
    return Is("a file of PyTorch (torch.save, torch.jit.save)", kFromTorch);
  }
  if (Has(head, ".npy")) return Is("a file of NumPy (.npz)", kExport);
  if (Has(head, "model.weights.h5")) return Is("a model of Keras (.keras)", kFromTensorFlow);
  return Is("a zip archive", kUnpack);
}

// Protocols 2 to 5; what legacy files of PyTorch begin with is a number of ten bytes.
std::string OfPickle(std::string_view head) {
  if (Has(head.substr(0, 16), "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv)) {
    return Is("a file of PyTorch (torch.save)", kFromTorch);
  }
  return Is("a pickle of Python, as scikit-learn and PyTorch save models", kExport);
}

bool SameWithoutCase(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

// Text: what servers send in place of a file, and formats of other frameworks.
std::string OfText(std::string_view head) {
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  while (!head.empty() && std::isspace(static_cast<unsigned char>(head[0])) != 0) {
    head.remove_prefix(1);
  }
  const auto begins = [head](std::string_view with) {
    return head.size() >= with.size() &&
           std::ranges::equal(head.substr(0, with.size()), with, SameWithoutCase);
  };
  if (begins("<!doctype html") || begins("<html")) {
    return Is("a web page (HTML), as a download gives that needs another address or a log-in",
              "download the file itself");
  }
  if (begins("<?xml") || begins("<error>")) {
    return Has(head, "<net ") ? Is("a model of OpenVINO (XML)", kOtherEngine)
                              : Is("XML, as storage servers answer where they refuse",
                                   "read what it says, and download the file again");
  }
  const bool object = begins("{\"") || begins("{ ") || begins("{\n") || begins("{\r") ||
                      begins("{}") || begins("[{");
  if (object) return Is("JSON text", "read what it says, and put the model's .onnx file here");
  const bool plain = head.size() >= 16 && std::ranges::all_of(head, [](char c) {
                       const auto byte = static_cast<unsigned char>(c);
                       return std::isprint(byte) != 0 || std::isspace(byte) != 0 || byte >= 0x80;
                     });
  if (plain) return Is("text", "read what it says, and put the model's .onnx file here");
  return {};
}

// The size of a protobuf's field that begins behind its tag, and where that begins; false: none.
bool TakeVarint(std::string_view& from, std::uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(from[0]);
    from.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// TensorFlow's are protobufs too. A SavedModel is a version, 1, and graphs, which begin with what
// describes them; ONNX's first field is its IR version, which no file has had as 1 since 2017. A
// frozen graph is nodes, each a name and an operator.
std::string OfTensorFlow(std::string_view head) {
  std::uint64_t size = 0;
  if (head.starts_with("\x08\x01\x12")) {
    std::string_view graph = head.substr(3);
    if (TakeVarint(graph, size) && graph.starts_with("\x0a")) {
      return Is("a SavedModel of TensorFlow", kFromTensorFlow);
    }
  }
  if (!head.starts_with("\x0a")) return {};
  std::string_view node = head.substr(1);
  if (!TakeVarint(node, size) || !node.starts_with("\x0a")) return {};
  node.remove_prefix(1);
  if (!TakeVarint(node, size) || size >= node.size() || node[size] != '\x12') return {};
  return Is("a frozen graph of TensorFlow", kFromTensorFlow);
}

}  // namespace

std::string WhyNoGraph(std::string_view head, std::string_view extension) {
  if (head.empty()) return Is("empty", "copy or export it again");
  for (const Format& format : kFormats) {
    if (head.size() > format.at && head.substr(format.at).starts_with(format.magic)) {
      return Is(format.name, format.remedy);
    }
  }
  if (head.starts_with("PK\x03\x04")) return OfZip(head, extension);
  if (head[0] == '\x80' && head.size() > 1 && head[1] >= 2 && head[1] <= 5) return OfPickle(head);
  if (head[0] == '\0') {
    const bool zeros = std::ranges::all_of(head, [](char c) { return c == '\0'; });
    return Is(zeros ? "zeros, as a copy leaves that was cut off or found the disk full"
                    : "no ONNX graph, which begins with another byte than zero",
              "copy or export it again");
  }
  if (std::string why = OfTensorFlow(head); !why.empty()) return why;
  return OfText(head);
}

std::string WhyNoGraph(const std::filesystem::path& path) {
  std::string head(kHeadBytes, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file) return {};
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  return WhyNoGraph(head, path.extension().string());
}

}  // namespace tactus
