#include "profiling/sample_row.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/rng.h"

namespace tactus {
namespace {

// Of the samples of one batch and input.
constexpr std::size_t kMostBytes = std::size_t{512} << 20;

// "3,320,320" into `dims`; false unless it is exactly that many positive numbers.
bool ParseDims(const std::string& text, std::span<std::int64_t> dims) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    while (at != end && *at == ' ') ++at;
    const auto [next, error] = std::from_chars(at, end, dims[i]);
    if (error != std::errc() || dims[i] < 1) return false;
    at = next;
    if (i + 1 == dims.size()) return at == end;
    if (at == end || *at != ',') return false;
    ++at;
  }
  return text.empty();
}

Expected<Shape> RowShape(const ModelSpec& spec, const TensorSpec& input) {
  Shape shape = input.dims;
  const bool batches = spec.max_batch > 0 && !shape.empty();
  if (batches) shape[0] = 1;
  const auto given = spec.parameters.find("profile_shape." + input.name);
  if (given != spec.parameters.end()) {
    Shape stated = shape;
    if (!ParseDims(given->second, std::span(stated).subspan(batches ? 1 : 0))) {
      return InvalidArgument(
          fmt::format("model '{}': parameter '{}' is '{}'; it must be {} positive "
                      "numbers with commas between them",
                      spec.name, given->first, given->second, shape.size() - (batches ? 1 : 0)));
    }
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] < 0) shape[i] = stated[i];
      if (shape[i] == stated[i]) continue;
      return InvalidArgument(fmt::format("model '{}': parameter '{}' is '{}', but the input is {}",
                                         spec.name, given->first, given->second,
                                         ToString(input.dims)));
    }
  }
  for (std::int64_t& dim : shape) dim = dim < 0 ? 1 : dim;
  return shape;
}

Expected<Shape> StatedShape(const ModelSpec& spec, const TensorSpec& input,
                            const StatedSample& sample) {
  const bool batches = spec.max_batch > 0 && !input.dims.empty();
  Shape shape = sample.dims;
  if (batches) shape.insert(shape.begin(), 1);
  const auto fits = [&] {
    if (shape.size() != input.dims.size()) return false;
    for (std::size_t i = batches ? 1 : 0; i < shape.size(); ++i) {
      if (input.dims[i] >= 0 && input.dims[i] != shape[i]) return false;
    }
    return true;
  };
  if (fits()) return shape;
  // A scalar of a graph may be declared with one dimension of one.
  if (input.dims.empty() && ElementCount(shape) == 1) return Shape{};
  return InvalidArgument(
      fmt::format("model '{}': model_warmup states {} for a row of input '{}', "
                  "and the input is {}",
                  spec.name, ToString(sample.dims), input.name, ToString(input.dims)));
}

// Whether these are just so many strings, each behind its length.
bool AreStrings(std::span<const std::byte> bytes, std::size_t count) {
  for (; count > 0; --count) {
    std::uint32_t length = 0;
    if (bytes.size() < sizeof(length)) return false;
    std::memcpy(&length, bytes.data(), sizeof(length));  // little-endian, as we are
    bytes = bytes.subspan(sizeof(length));
    if (bytes.size() < length) return false;
    bytes = bytes.subspan(length);
  }
  return bytes.empty();
}

Expected<std::vector<std::byte>> ReadElements(const ModelSpec& spec, const TensorSpec& input,
                                              const std::filesystem::path& path,
                                              std::size_t count) {
  const auto wrong = [&](const std::string& why) {
    return InvalidArgument(fmt::format("model '{}': the sample of input '{}', {}: {}", spec.name,
                                       input.name, path.string(), why));
  };
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(path, failed);
  if (failed) return wrong(failed.message());
  const bool strings = input.type == DataType::kBytes;
  if (!strings && size != count * ElementSize(input.type)) {
    return wrong(fmt::format("it has {} bytes, and {} elements of {} have {}", size, count,
                             Name(input.type), count * ElementSize(input.type)));
  }
  if (size > kMostBytes) return wrong("it is too large");
  std::vector<std::byte> bytes(size);
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (!file || static_cast<std::uintmax_t>(file.gcount()) != size) return wrong("cannot be read");
  if (strings && !AreStrings(bytes, count)) {
    return wrong(
        fmt::format("it is not {} strings, each behind its length (4 bytes, the lowest "
                    "first)",
                    count));
  }
  return bytes;
}

template <class T>
void FillWithNoise(std::vector<std::byte>& bytes, Rng& rng) {
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    const T value = static_cast<T>(rng.Normal());
    std::memcpy(bytes.data() + at, &value, sizeof(T));
  }
}

}  // namespace

Expected<SampleRow> SampleRow::Make(const ModelSpec& spec, std::uint64_t seed) {
  for (const StatedSample& each : spec.sample) {
    if (std::ranges::find(spec.inputs, each.input, &TensorSpec::name) == spec.inputs.end()) {
      return InvalidArgument(
          fmt::format("model '{}': model_warmup names input '{}', which it has "
                      "not",
                      spec.name, each.input));
    }
  }
  SampleRow row;
  for (const TensorSpec& input : spec.inputs) {
    const auto stated = std::ranges::find(spec.sample, input.name, &StatedSample::input);
    const StatedSample* const sample = stated == spec.sample.end() ? nullptr : &*stated;
    Expected<Shape> shape =
        sample == nullptr ? RowShape(spec, input) : StatedShape(spec, input, *sample);
    if (!shape) return std::unexpected(std::move(shape.error()));
    const auto count = ElementCount(*shape);
    const std::size_t element = input.type == DataType::kBytes ? 4 : ElementSize(input.type);
    // A batch of samples is to fit into memory beside what serves.
    const auto most =
        kMostBytes / (element * static_cast<std::size_t>(std::max(1, spec.max_batch)));
    if (!count || static_cast<std::size_t>(*count) > most) {
      return InvalidArgument(fmt::format("model '{}': a row of input '{}' is too large: {}",
                                         spec.name, input.name, ToString(*shape)));
    }
    if (sample != nullptr && sample->data == StatedSample::Data::kFile) {
      auto bytes = ReadElements(spec, input, sample->file, static_cast<std::size_t>(*count));
      if (!bytes) return std::unexpected(std::move(bytes.error()));
      row.bytes_.push_back(*std::move(bytes));
      row.shapes_.push_back(*std::move(shape));
      continue;
    }
    // An empty string is its length, four zero bytes.
    std::vector<std::byte>& bytes =
        row.bytes_.emplace_back(static_cast<std::size_t>(*count) * element);
    const bool noise = sample == nullptr || sample->data == StatedSample::Data::kNoise;
    Rng rng = Rng::Stream(seed, "sample/" + input.name);
    if (noise && input.type == DataType::kFp32) FillWithNoise<float>(bytes, rng);
    if (noise && input.type == DataType::kFp64) FillWithNoise<double>(bytes, rng);
    row.shapes_.push_back(*std::move(shape));
  }
  row.View();
  return row;
}

Expected<SampleRow> SampleRow::Make(const ModelSpec& spec, std::uint64_t seed, const Engine& engine,
                                    ModelHandle handle) {
  std::vector<SampleTensor> samples = engine.Sample(handle);
  if (!spec.sample.empty() || samples.size() != spec.inputs.size()) return Make(spec, seed);
  SampleRow row;
  for (SampleTensor& sample : samples) {
    row.shapes_.push_back(std::move(sample.shape));
    row.bytes_.push_back(std::move(sample.bytes));
  }
  row.View();
  return row;
}

void SampleRow::View() {
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    views_.push_back({bytes_[i].data(), bytes_[i].size(), shapes_[i]});
  }
}

}  // namespace tactus
