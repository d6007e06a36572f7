#include "profiling/sample_row.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/memory_guard.h"
#include "base/rng.h"
#include "base/whole_file.h"
#include "core/half.h"

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
  const auto given = spec.parameters.find("profile_shape." + input.name);
  const auto found = spec.found_shapes.find(input.name);
  if (input.any_shape && given != spec.parameters.end()) {
    const auto sizes = 1 + std::ranges::count(given->second, ',');
    shape.assign(static_cast<std::size_t>(sizes) + (batches ? 1 : 0), -1);
  } else if (input.any_shape && found != spec.found_shapes.end()) {
    shape = found->second;
  }
  if (batches) shape[0] = 1;
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
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] >= 0) continue;
    shape[i] = found != spec.found_shapes.end() ? found->second[i] : 1;
  }
  return shape;
}

Expected<Shape> StatedShape(const ModelSpec& spec, const TensorSpec& input,
                            const StatedSample& sample) {
  Shape shape = sample.dims;
  if (spec.max_batch > 0 && !input.dims.empty()) shape.insert(shape.begin(), 1);
  if (input.Takes(shape)) return shape;
  // A scalar of a graph may be declared with one dimension of one.
  if (input.dims.empty() && ElementCount(shape) == 1) return Shape{};
  return InvalidArgument(
      fmt::format("model '{}': model_warmup states {} for a row of input '{}', "
                  "and the input is {}",
                  spec.name, ToString(sample.dims), input.name, ToString(input.dims)));
}

Expected<std::vector<std::byte>> ReadElements(const TensorSpec& input,
                                              const std::filesystem::path& path,
                                              std::int64_t count) {
  const std::string what = "sample of input '" + input.name + "'";
  std::error_code unknown;
  if (std::filesystem::is_other(path, unknown)) {
    return InvalidArgument(path.string() + ": this " + what + " is no regular file");
  }
  if (std::filesystem::file_size(path, unknown) > kMostBytes && !unknown) {
    return InvalidArgument(path.string() + ": this " + what + " is too large");
  }
  const Expected<std::string> text = ReadWhole(path, what);
  if (!text) return std::unexpected(text.error());
  const auto bytes = std::as_bytes(std::span(*text));
  const bool strings = input.type == DataType::kBytes;
  const auto needed =
      strings ? BytesPrefix(bytes, count)
              : std::optional(static_cast<std::size_t>(count) * ElementSize(input.type));
  if (needed == bytes.size()) return std::vector(bytes.begin(), bytes.end());
  return InvalidArgument(fmt::format(
      "{}: {} bytes are not {} elements of {}{}", path.string(), bytes.size(), count,
      Name(input.type), strings ? ", each a length in 32 bits and that many bytes" : ""));
}

template <class T, class Draw>
void Fill(std::vector<std::byte>& bytes, Draw draw) {
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    const T value = static_cast<T>(draw());
    std::memcpy(bytes.data() + at, &value, sizeof(T));
  }
}

void FillWithNoise(DataType type, const SampleDraw& draw, std::vector<std::byte>& bytes, Rng& rng) {
  const auto noise = [&] {
    // (0, 1]: at 0, a logarithm is infinite.
    if (draw.noise == SampleDraw::Noise::kFraction) return draw.scale * (1 - rng.Uniform());
    if (draw.noise == SampleDraw::Noise::kWhole) return static_cast<double>(rng.Below(3));
    if (draw.noise == SampleDraw::Noise::kWide) {
      return (rng.Below(2) == 0 ? 1 : -1) * std::pow(10.0, 10 * rng.Uniform() - 3);
    }
    const double value = draw.scale * rng.Normal();
    if (draw.noise == SampleDraw::Noise::kNormal) return value;
    return draw.noise == SampleDraw::Noise::kNegative ? -std::abs(value) : std::abs(value);
  };
  if (type == DataType::kFp32) Fill<float>(bytes, noise);
  if (type == DataType::kFp64) Fill<double>(bytes, noise);
  if (type == DataType::kFp16) Fill<std::uint16_t>(bytes, [&] { return HalfOf(noise()); });
  if (type == DataType::kBf16) Fill<std::uint16_t>(bytes, [&] { return BrainHalfOf(noise()); });
}

// Positive floats of any size are in the order of their bits.
template <class T>
void SortBits(std::vector<std::byte>& bytes, std::int64_t last) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(T));
  const auto length = static_cast<std::size_t>(std::max<std::int64_t>(last, 1));
  for (std::size_t at = 0; at + length <= numbers.size(); at += length) {
    std::sort(numbers.begin() + static_cast<std::ptrdiff_t>(at),
              numbers.begin() + static_cast<std::ptrdiff_t>(at + length));
  }
  std::memcpy(bytes.data(), numbers.data(), numbers.size() * sizeof(T));
}

void SortPositive(DataType type, std::vector<std::byte>& bytes, const Shape& shape) {
  const std::int64_t last = shape.empty() ? 1 : shape.back();
  if (type == DataType::kFp32) SortBits<std::uint32_t>(bytes, last);
  if (type == DataType::kFp64) SortBits<std::uint64_t>(bytes, last);
  if (type == DataType::kFp16 || type == DataType::kBf16) SortBits<std::uint16_t>(bytes, last);
}

// Which of the elements are not those of the other row: whether the next one is, in turn.
class Apart {
 public:
  Apart(std::size_t elements, Likeness likeness, Rng& rng)
      : rng_(rng), half_(likeness == Likeness::kHalf) {
    if (elements > 0) {
      for (std::size_t& place : places_) place = rng.Below(elements);
    }
  }
  bool Next() {
    const std::size_t at = next_++;
    return half_ ? rng_.Below(2) == 0 : at == places_[0] || at == places_[1];
  }

 private:
  Rng& rng_;
  const bool half_;
  std::array<std::size_t, 2> places_{};
  std::size_t next_ = 0;
};

// Those that are apart are near those of `other`.
template <class T>
void ShareFloats(std::span<const std::byte> other, Likeness likeness, std::vector<std::byte>& bytes,
                 Rng& rng) {
  Apart apart(bytes.size() / sizeof(T), likeness, rng);
  const double far = likeness == Likeness::kNear ? 0.01 : 0.2;
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value{};
    std::memcpy(&value, other.data() + at, sizeof(T));
    if (likeness == Likeness::kNear || apart.Next()) {
      value *= static_cast<T>(1 - far + 2 * far * rng.Uniform());
    }
    std::memcpy(bytes.data() + at, &value, sizeof(T));
  }
}

void ShareElements(std::size_t element, std::span<const std::byte> other, Likeness likeness,
                   std::vector<std::byte>& bytes, Rng& rng) {
  Apart apart(bytes.size() / element, likeness, rng);
  for (std::size_t at = 0; at + element <= bytes.size(); at += element) {
    if (!apart.Next()) std::memcpy(bytes.data() + at, other.data() + at, element);
  }
}

// Of any size up to `most`, as far as their type goes.
void FillWithWide(DataType type, int most, std::vector<std::byte>& bytes, Rng& rng) {
  const auto up_to = [&](int type_goes) {
    const double all = std::log(std::min(most, type_goes) + 1.0);
    return [&rng, all] { return static_cast<std::int64_t>(std::exp(all * rng.Uniform())) - 1; };
  };
  if (type == DataType::kUint16) return Fill<std::uint16_t>(bytes, up_to(65'535));
  if (type == DataType::kInt16) return Fill<std::int16_t>(bytes, up_to(32'767));
  if (type == DataType::kUint32) return Fill<std::uint32_t>(bytes, up_to(most));
  if (type == DataType::kInt32) return Fill<std::int32_t>(bytes, up_to(most));
  if (type == DataType::kUint64) return Fill<std::uint64_t>(bytes, up_to(most));
  if (type == DataType::kInt64) return Fill<std::int64_t>(bytes, up_to(most));
}

void FillWithIntegers(DataType type, const SampleDraw& draw, std::vector<std::byte>& bytes,
                      Rng& rng) {
  const auto up_to = [&rng](int last) {
    return [&rng, last] {
      return static_cast<std::int64_t>(rng.Below(static_cast<std::uint64_t>(last) + 1));
    };
  };
  const int sign = draw.noise == SampleDraw::Noise::kNegative ? -1 : 1;
  const auto with_sign = [&](int last) {
    return [sign, next = up_to(last)] { return sign * next(); };
  };
  const int most = draw.integers;
  if (draw.noise == SampleDraw::Noise::kWide && ElementSize(type) > 1) {
    return FillWithWide(type, most, bytes, rng);
  }
  switch (type) {
    case DataType::kBool:
      return Fill<std::uint8_t>(bytes, up_to(1));
    case DataType::kUint8:
      return Fill<std::uint8_t>(bytes, up_to(std::min(most, 255)));
    case DataType::kInt8:
      return Fill<std::int8_t>(bytes, with_sign(std::min(most, 127)));
    case DataType::kUint16:
      return Fill<std::uint16_t>(bytes, up_to(most));
    case DataType::kInt16:
      return Fill<std::int16_t>(bytes, with_sign(most));
    case DataType::kUint32:
      return Fill<std::uint32_t>(bytes, up_to(most));
    case DataType::kInt32:
      return Fill<std::int32_t>(bytes, with_sign(most));
    case DataType::kUint64:
      return Fill<std::uint64_t>(bytes, up_to(most));
    case DataType::kInt64:
      return Fill<std::int64_t>(bytes, with_sign(most));
    default:
      return;
  }
}

// As many strings, each a number in [0, most], as there are empty ones in `bytes`.
void FillWithNumbers(int most, std::vector<std::byte>& bytes, Rng& rng) {
  const std::size_t count = bytes.size() / 4;
  bytes.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string text = std::to_string(rng.Below(static_cast<std::uint64_t>(most) + 1));
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<std::byte>(text.size() >> shift & 0xff));
    }
    for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  }
}

}  // namespace

bool StatesShape(const ModelSpec& spec, const TensorSpec& input) {
  return spec.parameters.contains("profile_shape." + input.name) ||
         std::ranges::find(spec.sample, input.name, &StatedSample::input) != spec.sample.end();
}

Expected<SampleRow> SampleRow::Make(const ModelSpec& spec, const SampleDraw& draw) {
  return WithMemory(fmt::format("model '{}': a made-up row of its inputs", spec.name),
                    [&] { return Draw(spec, draw); });
}

Expected<SampleRow> SampleRow::Draw(const ModelSpec& spec, const SampleDraw& draw) {
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
    const bool present = std::ranges::find(draw.present, input.name) != draw.present.end();
    row.absent_.push_back(input.optional && !present && !StatesShape(spec, input));
    if (row.absent_.back()) {
      row.shapes_.emplace_back();
      row.bytes_.emplace_back();
      continue;
    }
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
    if (draw.integers == 0 && sample != nullptr && sample->data == StatedSample::Data::kFile) {
      auto bytes = ReadElements(input, sample->file, *count);
      if (!bytes) return std::unexpected(std::move(bytes.error()));
      row.bytes_.push_back(*std::move(bytes));
      row.shapes_.push_back(*std::move(shape));
      continue;
    }
    // An empty string is its length, four zero bytes.
    std::vector<std::byte>& bytes =
        row.bytes_.emplace_back(static_cast<std::size_t>(*count) * element);
    const bool noise =
        draw.integers > 0 || sample == nullptr || sample->data == StatedSample::Data::kNoise;
    Rng rng = Rng::Stream(draw.seed, "sample/" + input.name);
    if (noise) FillWithNoise(input.type, draw, bytes, rng);
    if (noise && draw.noise == SampleDraw::Noise::kAscending) {
      SortPositive(input.type, bytes, *shape);
    }
    if (draw.integers > 0) FillWithIntegers(input.type, draw, bytes, rng);
    if (draw.integers > 0 && input.type == DataType::kBytes) {
      FillWithNumbers(draw.integers, bytes, rng);
    }
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
    row.absent_.push_back(false);
  }
  row.View();
  return row;
}

void SampleRow::ShareWith(const SampleRow& other, const ModelSpec& spec, std::uint64_t seed,
                          Likeness likeness) {
  Rng rng = Rng::Stream(seed, "sample/shared");
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const DataType type = spec.inputs[i].type;
    if (type == DataType::kBytes || bytes_[i].size() != other.bytes_[i].size()) continue;
    if (type == DataType::kFp32) {
      ShareFloats<float>(other.bytes_[i], likeness, bytes_[i], rng);
    } else if (type == DataType::kFp64) {
      ShareFloats<double>(other.bytes_[i], likeness, bytes_[i], rng);
    } else {
      ShareElements(ElementSize(type), other.bytes_[i], likeness, bytes_[i], rng);
    }
  }
}

void SampleRow::View() {
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    views_.push_back({bytes_[i].data(), bytes_[i].size(), shapes_[i], absent_[i]});
  }
}

}  // namespace tactus
