#include "engines/isolated/messages.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tactus::isolated {
namespace {

constexpr int kLastCode = static_cast<int>(ErrorCode::kInternal);
constexpr std::uint8_t kLastType = static_cast<std::uint8_t>(DataType::kBf16);
constexpr std::int64_t kMostRows = std::int64_t{1} << 20;

std::unexpected<Error> BadAnswer(const char* what) {
  return Internal(fmt::format("the engine's process gave an invalid answer: {}", what));
}

void PutStatus(ByteWriter& to, const Status& status) {
  to.Put(static_cast<std::uint8_t>(status ? 1 : 0));
  if (status) return;
  to.Put(static_cast<std::uint8_t>(status.error().code));
  to.Put(std::string_view(status.error().message));
}

Status TakeStatus(ByteReader& from) {
  if (from.TakeBool()) return {};
  const int code = from.Take<std::uint8_t>();
  std::string message = from.TakeText();
  if (code > kLastCode) from.Spoil();
  return Fail(code > kLastCode ? ErrorCode::kInternal : static_cast<ErrorCode>(code),
              std::move(message));
}

void PutShape(ByteWriter& to, std::span<const std::int64_t> shape) {
  to.Put(static_cast<std::uint32_t>(shape.size()));
  for (const std::int64_t dim : shape) to.Put(dim);
}

Shape TakeShape(ByteReader& from) {
  Shape shape(from.TakeCount(sizeof(std::int64_t)));
  for (std::int64_t& dim : shape) dim = from.Take<std::int64_t>();
  return shape;
}

void PutTensors(ByteWriter& to, const std::vector<TensorSpec>& tensors) {
  to.Put(static_cast<std::uint32_t>(tensors.size()));
  for (const TensorSpec& tensor : tensors) {
    to.Put(std::string_view(tensor.name));
    to.Put(tensor.type);
    PutShape(to, tensor.dims);
    to.Put(static_cast<std::uint8_t>(tensor.reshape ? 1 : 0));
    if (tensor.reshape) PutShape(to, *tensor.reshape);
    to.Put(tensor.optional);
    to.Put(tensor.any_shape);
    to.Put(static_cast<std::uint32_t>(tensor.dim_names.size()));
    for (const std::string& name : tensor.dim_names) to.Put(std::string_view(name));
  }
}

// -1 is an open dimension.
Shape TakeDims(ByteReader& from) {
  Shape dims = TakeShape(from);
  if (std::ranges::any_of(dims, [](std::int64_t dim) { return dim < -1; })) from.Spoil();
  return dims;
}

std::vector<TensorSpec> TakeTensors(ByteReader& from) {
  std::vector<TensorSpec> tensors(from.TakeCount(16));
  for (TensorSpec& tensor : tensors) {
    tensor.name = from.TakeText();
    const auto type = from.Take<std::uint8_t>();
    if (type > kLastType) from.Spoil();
    tensor.type = static_cast<DataType>(std::min(type, kLastType));
    tensor.dims = TakeDims(from);
    if (from.TakeBool()) tensor.reshape = TakeDims(from);
    if (tensor.reshape && !SameElements(tensor.dims, *tensor.reshape)) from.Spoil();
    tensor.optional = from.TakeBool();
    tensor.any_shape = from.TakeBool();
    tensor.dim_names.resize(from.TakeCount(4));
    for (std::string& name : tensor.dim_names) name = from.TakeText();
  }
  return tensors;
}

void PutDuration(ByteWriter& to, Duration d) { to.Put(static_cast<std::int64_t>(d.count())); }

// A span of time that passed; what is absurd is none.
Duration TakeDuration(ByteReader& from) {
  const Duration d{from.Take<std::int64_t>()};
  return d < Duration{} || d > Seconds(1'000'000) ? Duration{} : d;
}

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

void Put(ByteWriter& to, const Hello& hello) {
  to.Put(std::string_view(hello.engine));
  to.Put(std::string_view(hello.library));
}

Hello TakeHello(ByteReader& from) {
  std::string engine = from.TakeText();
  return {std::move(engine), from.TakeText()};
}

void Put(ByteWriter& to, const HelloAnswer& answer) {
  PutStatus(to, answer.status);
  to.Put(std::string_view(answer.name));
  to.Put(answer.terminates);
  to.Put(answer.tries);
}

Expected<HelloAnswer> ReadHelloAnswer(std::span<const std::byte> bytes) {
  ByteReader from(bytes);
  HelloAnswer answer{.status = TakeStatus(from), .name = {}};
  answer.name = from.TakeText();
  answer.terminates = from.TakeBool();
  answer.tries = from.TakeBool();
  if (!from.whole()) return BadAnswer("an engine's name");
  return answer;
}

void Put(ByteWriter& to, const ModelSpec& spec, const CpuPlacement& placement) {
  to.Put(std::string_view(spec.name));
  to.Put(spec.version);
  to.Put(std::string_view(spec.platform));
  to.Put(static_cast<std::int32_t>(spec.max_batch));
  to.Put(spec.load);
  PutTensors(to, spec.inputs);
  PutTensors(to, spec.outputs);
  to.Put(static_cast<std::uint32_t>(spec.exits.size()));
  for (const ExitSpec& exit : spec.exits) {
    to.Put(std::string_view(exit.name));
    to.Put(std::string_view(exit.graph.native()));
    to.Put(exit.accuracy);
  }
  to.Put(static_cast<std::uint32_t>(spec.parameters.size()));
  for (const auto& [key, value] : spec.parameters) {
    to.Put(std::string_view(key));
    to.Put(std::string_view(value));
  }
  to.Put(static_cast<std::int32_t>(placement.threads));
  to.Put(static_cast<std::uint32_t>(placement.cores.size()));
  for (const int core : placement.cores) to.Put(static_cast<std::int32_t>(core));
}

LoadRequest TakeLoadRequest(ByteReader& from) {
  LoadRequest request;
  ModelSpec& spec = request.spec;
  spec.name = from.TakeText();
  spec.version = from.Take<std::int64_t>();
  spec.platform = from.TakeText();
  spec.max_batch = from.Take<std::int32_t>();
  spec.load = from.Take<std::uint64_t>();
  spec.inputs = TakeTensors(from);
  spec.outputs = TakeTensors(from);
  spec.exits.resize(from.TakeCount(16));
  for (ExitSpec& exit : spec.exits) {
    exit.name = from.TakeText();
    exit.graph = from.TakeText();
    exit.accuracy = from.Take<double>();
  }
  for (std::size_t left = from.TakeCount(8); left > 0; --left) {
    std::string key = from.TakeText();
    spec.parameters[std::move(key)] = from.TakeText();
  }
  request.placement.threads = from.Take<std::int32_t>();
  request.placement.cores.resize(from.TakeCount(4));
  for (int& core : request.placement.cores) core = from.Take<std::int32_t>();
  return request;
}

void Put(ByteWriter& to, const LoadAnswer& answer) {
  PutStatus(to, answer.status);
  to.Put(answer.handle);
  to.Put(static_cast<std::int32_t>(answer.max_batch));
  PutTensors(to, answer.inputs);
  PutTensors(to, answer.outputs);
  to.Put(static_cast<std::uint32_t>(answer.exits.size()));
  for (const std::string& exit : answer.exits) to.Put(std::string_view(exit));
  to.Put(answer.contents);
}

Expected<LoadAnswer> ReadLoadAnswer(std::span<const std::byte> bytes) {
  ByteReader from(bytes);
  LoadAnswer answer{.status = TakeStatus(from), .inputs = {}, .outputs = {}, .exits = {}};
  answer.handle = from.Take<std::uint64_t>();
  answer.max_batch = from.Take<std::int32_t>();
  answer.inputs = TakeTensors(from);
  answer.outputs = TakeTensors(from);
  answer.exits.resize(from.TakeCount(4));
  for (std::string& exit : answer.exits) exit = from.TakeText();
  answer.contents = from.Take<std::uint64_t>();
  if (!from.whole()) return BadAnswer("a loaded model");
  return answer;
}

void Put(ByteWriter& to, const MemoryUse& use) {
  to.Put(use.weight_bytes);
  to.Put(use.peak_bytes);
}

Expected<MemoryUse> ReadMemoryUse(std::span<const std::byte> bytes) {
  ByteReader from(bytes);
  MemoryUse use;
  use.weight_bytes = from.Take<std::uint64_t>();
  use.peak_bytes = from.Take<std::uint64_t>();
  if (!from.whole()) return BadAnswer("what a model holds");
  return use;
}

void Put(ByteWriter& to, const std::vector<ArenaUse>& arenas) {
  to.Put(static_cast<std::uint32_t>(arenas.size()));
  for (const ArenaUse& arena : arenas) {
    to.Put(std::string_view(arena.model));
    to.Put(arena.version);
    to.Put(arena.bytes);
    to.Put(arena.in_use_bytes);
  }
}

Expected<std::vector<ArenaUse>> ReadArenas(std::span<const std::byte> bytes) {
  ByteReader from(bytes);
  std::vector<ArenaUse> arenas(from.TakeCount(28));
  for (ArenaUse& arena : arenas) {
    arena.model = from.TakeText();
    arena.version = from.Take<std::int64_t>();
    arena.bytes = from.Take<std::uint64_t>();
    arena.in_use_bytes = from.Take<std::uint64_t>();
  }
  if (!from.whole()) return BadAnswer("the memory of arenas");
  return arenas;
}

void Put(ByteWriter& to, const std::vector<SampleTensor>& samples) {
  to.Put(static_cast<std::uint32_t>(samples.size()));
  for (const SampleTensor& sample : samples) {
    PutShape(to, sample.shape);
    to.Put(std::span(sample.bytes));
  }
}

Expected<std::vector<SampleTensor>> ReadSamples(std::span<const std::byte> bytes) {
  ByteReader from(bytes);
  std::vector<SampleTensor> samples(from.TakeCount(8));
  for (SampleTensor& sample : samples) {
    sample.shape = TakeShape(from);
    const auto taken = from.TakeBytes();
    sample.bytes.assign(taken.begin(), taken.end());
  }
  if (!from.whole()) return BadAnswer("a sample");
  return samples;
}

void PutRun(ByteWriter& to, std::uint64_t handle, const BatchJob& job,
            std::span<const std::size_t> offsets, std::uint32_t output_segment) {
  to.Put(handle);
  to.Put(job.id.value());
  to.Put(job.exit.value());
  to.Put(output_segment);
  to.Put(static_cast<std::uint32_t>(offsets.size()));
  to.Put(static_cast<std::uint32_t>(job.rows.size()));
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const bool absent = !job.rows.empty() && job.rows[0].inputs[i].absent;  // in all rows
    to.Put(absent);
    if (absent) continue;
    to.Put(static_cast<std::uint64_t>(offsets[i]));
    std::span<const std::int64_t> last;
    for (std::size_t r = 0; r < job.rows.size(); ++r) {
      const TensorView& view = job.rows[r].inputs[i];
      const bool same = r > 0 && SameShape(view.shape, last);
      to.Put(static_cast<std::uint64_t>(view.bytes));
      to.Put(same);
      if (!same) PutShape(to, view.shape);
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
    if (from.TakeBool()) {
      for (std::uint32_t r = 0; r < rows; ++r) run.views[std::size_t{r} * count + i].absent = true;
      continue;
    }
    auto at = from.Take<std::uint64_t>();
    for (std::uint32_t r = 0; r < rows; ++r) {
      const auto bytes = from.Take<std::uint64_t>();
      if (!from.TakeBool()) run.shapes.push_back(TakeShape(from));
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

void Put(ByteWriter& to, const RunAnswer& answer) {
  PutStatus(to, answer.status);
  to.Put(answer.needs);
  PutDuration(to, answer.gather);
  PutDuration(to, answer.infer);
  PutDuration(to, answer.scatter);
  to.Put(answer.misshapen);
  to.Put(answer.cut_jpegs);
  to.Put(static_cast<std::uint32_t>(answer.tensors.size()));
  for (const RunAnswer::Tensor& tensor : answer.tensors) {
    PutShape(to, tensor.shape);
    to.Put(tensor.offset);
    to.Put(tensor.bytes);
    to.Put(static_cast<std::uint32_t>(tensor.row_bytes.size()));
    for (const std::uint64_t bytes : tensor.row_bytes) to.Put(bytes);
  }
}

Expected<RunAnswer> ReadRunAnswer(std::span<const std::byte> bytes) {
  ByteReader from(bytes);
  RunAnswer answer{.status = TakeStatus(from), .tensors = {}};
  answer.needs = from.Take<std::uint64_t>();
  answer.gather = TakeDuration(from);
  answer.infer = TakeDuration(from);
  answer.scatter = TakeDuration(from);
  answer.misshapen = from.TakeBool();
  answer.cut_jpegs = from.Take<std::uint32_t>();
  answer.tensors.resize(from.TakeCount(24));
  for (RunAnswer::Tensor& tensor : answer.tensors) {
    tensor.shape = TakeShape(from);
    tensor.offset = from.Take<std::uint64_t>();
    tensor.bytes = from.Take<std::uint64_t>();
    tensor.row_bytes.resize(from.TakeCount(8));
    for (std::uint64_t& row : tensor.row_bytes) row = from.Take<std::uint64_t>();
  }
  if (!from.whole()) return BadAnswer("a batch's output");
  return answer;
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
