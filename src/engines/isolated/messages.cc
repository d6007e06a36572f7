#include "engines/isolated/messages.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tactus::isolated {
namespace {

constexpr std::int64_t kMostRows = std::int64_t{1} << 20;

bool SameShape(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  return std::ranges::equal(a, b);
}

Status CheckShape(const Shape& shape, const OutputsAsked& asked) {
  if (std::ranges::any_of(shape, [](std::int64_t dim) { return dim < 0; })) {
    return BadAnswer("a dimension is negative");
  }
  if (!ElementCount(shape)) return BadAnswer("a tensor has too many elements");
  const auto rows = static_cast<std::int64_t>(asked.rows);
  if (asked.batches && (shape.empty() || shape[0] != rows)) {
    return BadAnswer("an output has not one row for each of the batch");
  }
  return {};
}

// Splits the strings of a tensor, which nobody else can change any more, into rows.
Status SplitStrings(const RunAnswer::Tensor& answer, std::size_t rows,
                    std::span<const std::byte> bytes, BatchOutput::Tensor& tensor) {
  const std::int64_t elements = ElementCount(answer.shape).value();
  if (answer.row_bytes.size() != rows || elements % static_cast<std::int64_t>(rows) != 0) {
    return BadAnswer("strings without a part for each row");
  }
  std::size_t at = 0;
  for (const std::uint64_t size : answer.row_bytes) {
    if (size > bytes.size() - at) return BadAnswer("strings beyond their tensor");
    const auto row = bytes.subspan(at, size);
    const auto prefix = BytesPrefix(row, elements / static_cast<std::int64_t>(rows));
    if (!prefix || *prefix != size) return BadAnswer("strings whose lengths do not add up");
    tensor.rows.push_back(row);
    at += size;
  }
  return at == bytes.size() ? Status() : BadAnswer("bytes behind the last string");
}

// What a batch's answer lies in.
struct OutputStorage {
  std::shared_ptr<void> memory;
  std::vector<std::vector<std::byte>> strings;
};

}  // namespace

std::unexpected<Error> BadAnswer(const char* what) {
  return Internal(fmt::format("the engine's process gave an invalid answer: {}", what));
}

bool IsSound(const TensorSpec& tensor) {
  const auto sound = [](const Shape& dims) {
    return std::ranges::all_of(dims, [](std::int64_t dim) { return dim >= -1; });
  };
  return tensor.type <= DataType::kBf16 && sound(tensor.dims) &&
         (!tensor.reshape ||
          (sound(*tensor.reshape) && SameElements(tensor.dims, *tensor.reshape)));
}

void PutRun(ByteWriter& to, std::uint64_t handle, const BatchJob& job,
            std::span<const std::size_t> offsets, std::uint32_t output_segment) {
  to(handle, job.id.value(), job.exit.value(), output_segment,
     static_cast<std::uint32_t>(offsets.size()), static_cast<std::uint32_t>(job.rows.size()));
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const bool absent = !job.rows.empty() && job.rows[0].inputs[i].absent;  // in all rows
    to(absent);
    if (absent) continue;
    to(static_cast<std::uint64_t>(offsets[i]));
    std::span<const std::int64_t> last;
    for (std::size_t r = 0; r < job.rows.size(); ++r) {
      const TensorView& view = job.rows[r].inputs[i];
      const bool same = r > 0 && SameShape(view.shape, last);
      to(static_cast<std::uint64_t>(view.bytes), same);
      if (!same) to(view.shape);
      last = view.shape;
    }
  }
}

std::optional<RunRequest> TakeRun(ByteReader& from, std::span<const std::byte> inputs) {
  RunRequest run;
  run.handle = from.Take<std::uint64_t>();
  run.id = BatchId{from.Take<BatchId::rep>()};
  run.exit = ExitId{from.Take<ExitId::rep>()};
  run.output_segment = from.Take<std::uint32_t>();
  const auto count = from.Take<std::uint32_t>();
  const auto rows = from.Take<std::uint32_t>();
  if (!from.good() || std::uint64_t{count} * rows > static_cast<std::uint64_t>(kMostRows))
    return {};
  run.views.resize(std::size_t{count} * rows);
  run.shapes.reserve(run.views.size());  // so that the views' spans stay good
  for (std::uint32_t i = 0; i < count; ++i) {
    if (from.Take<bool>()) {
      for (std::uint32_t r = 0; r < rows; ++r) run.views[std::size_t{r} * count + i].absent = true;
      continue;
    }
    auto at = from.Take<std::uint64_t>();
    for (std::uint32_t r = 0; r < rows; ++r) {
      const auto bytes = from.Take<std::uint64_t>();
      if (!from.Take<bool>()) run.shapes.push_back(from.Take<Shape>());
      const bool fits = at <= inputs.size() && bytes <= inputs.size() - at;
      if (!from.good() || !fits || run.shapes.empty()) return {};
      run.views[std::size_t{r} * count + i] = {inputs.data() + at, bytes, run.shapes.back()};
      at += bytes;
    }
  }
  for (std::uint32_t r = 0; r < rows; ++r) {
    run.rows.push_back({std::span(run.views).subspan(std::size_t{r} * count, count), nullptr});
  }
  if (!from.whole()) return {};
  return run;
}

Expected<std::shared_ptr<const BatchOutput>> MakeOutput(const RunAnswer& answer,
                                                        const OutputsAsked& asked,
                                                        std::span<const std::byte> memory,
                                                        std::shared_ptr<void> storage) {
  if (answer.tensors.size() != asked.outputs.size()) return BadAnswer("the number of outputs");
  auto kept = std::make_shared<OutputStorage>();
  kept->memory = std::move(storage);
  kept->strings.resize(answer.tensors.size());
  auto output = std::make_shared<BatchOutput>();
  output->cut_jpegs = answer.cut_jpegs;
  for (std::size_t i = 0; i < answer.tensors.size(); ++i) {
    const RunAnswer::Tensor& from = answer.tensors[i];
    if (Status good = CheckShape(from.shape, asked); !good) return std::unexpected(good.error());
    if (from.offset > memory.size() || from.bytes > memory.size() - from.offset) {
      return BadAnswer("a tensor beyond the memory");
    }
    const auto data = memory.subspan(from.offset, from.bytes);
    BatchOutput::Tensor tensor{.shape = from.shape, .data = data};
    if (asked.outputs[i].type == DataType::kBytes) {
      kept->strings[i].assign(data.begin(), data.end());
      tensor.data = kept->strings[i];
      Status split = SplitStrings(from, asked.rows, tensor.data, tensor);
      if (!split) return std::unexpected(split.error());
    } else if (from.bytes % ElementSize(asked.outputs[i].type) != 0 ||
               from.bytes / ElementSize(asked.outputs[i].type) !=
                   static_cast<std::uint64_t>(*ElementCount(from.shape))) {
      return BadAnswer("a tensor whose size does not match its shape");
    }
    output->tensors.push_back(std::move(tensor));
  }
  output->storage = std::move(kept);
  return output;
}

}  // namespace tactus::isolated
