// What a server and the processes of its engines say to each other. The server asks, the process
// answers; tensors lie in memory that both have (shared_memory.h), messages say where. The server
// believes no answer: each is read within its bytes and then checked against what was asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/expected.h"
#include "base/serving_time.h"
#include "core/engine.h"
#include "engines/isolated/bytes.h"

namespace tactus::isolated {

enum class Question : std::uint8_t {
  // On the first connection.
  kHello,       // which engine; answered with its traits
  kConnection,  // the descriptor beside it is one more connection; no answer
  kTerminate,   // a batch; no answer
  kAlive,       // answered with arenas, at once, whatever the engine does
  // On the others.
  kLoad,
  kUnload,
  kMemory,
  kSample,
  kSegment,  // the descriptor beside it is memory number N from now on; no answer
  kRun,
  kFetch,  // the output of the last run, for which there was no room
};

struct Hello {
  std::string engine;
  std::string library;  // as EngineOptions::onnxruntime_library
};

struct HelloAnswer {
  Status status = {};
  std::string name = {};  // of the engine, with its version
  bool terminates = false;
  bool tries = false;
};

// What an engine completes of a model. The question is the model's ModelSpec and CpuPlacement.
struct LoadAnswer {
  Status status = {};
  std::uint64_t handle = 0;
  int max_batch = 0;
  std::vector<TensorSpec> inputs = {};
  std::vector<TensorSpec> outputs = {};
  std::vector<std::string> exits = {};
  std::uint64_t contents = 0;
};

struct RunAnswer {
  struct Tensor {
    Shape shape;
    std::uint64_t offset = 0;  // in the output's memory
    std::uint64_t bytes = 0;
    std::vector<std::uint64_t> row_bytes;  // of BYTES: each row's, one behind the other
  };
  Status status = {};
  std::uint64_t needs = 0;  // not 0: so many bytes of memory are needed; then kFetch
  std::vector<Tensor> tensors = {};
  Duration gather{}, infer{}, scatter{};
  bool misshapen = false;
  bool unmapped = false;  // it had no room for memory that it was handed, and holds none of that
  std::uint32_t cut_jpegs = 0;
};

// A type that is known, and dims of which -1 is an open one.
bool IsSound(const TensorSpec& tensor);

void Fields(auto& io, Of<decltype(io), Status> status) {
  bool good = status.has_value();
  io(good);
  if (good) return;
  std::uint8_t code = 0;
  if constexpr (kReads<decltype(io)>) {
    std::string message;
    io(code, message);
    if (code > static_cast<int>(ErrorCode::kInternal)) return io.Spoil();
    status = Fail(static_cast<ErrorCode>(code), std::move(message));
  } else {
    code = static_cast<std::uint8_t>(status.error().code);
    io(code, status.error().message);
  }
}
// A span of time that passed; what is absurd is none.
void Fields(auto& io, Of<decltype(io), Duration> duration) {
  std::int64_t ns = duration.count();
  io(ns);
  if constexpr (kReads<decltype(io)>) {
    const Duration read = Nanos(ns);
    duration = read < Duration{} || read > Seconds(1'000'000) ? Duration{} : read;
  }
}
void Fields(auto& io, Of<decltype(io), TensorSpec> tensor) {
  io(tensor.name, tensor.type, tensor.dims, tensor.reshape, tensor.optional, tensor.any_shape,
     tensor.dim_names);
  if constexpr (kReads<decltype(io)>) {
    if (!IsSound(tensor)) io.Spoil();
  }
}
void Fields(auto& io, Of<decltype(io), ExitSpec> exit) {
  std::string graph = exit.graph.native();
  io(exit.name, graph, exit.accuracy);
  if constexpr (kReads<decltype(io)>) exit.graph = std::move(graph);
}
// Without what no engine reads: the declared configuration, the profile's path, the SLO.
void Fields(auto& io, Of<decltype(io), ModelSpec> spec) {
  io(spec.name, spec.version, spec.platform, spec.max_batch, spec.load, spec.inputs, spec.outputs,
     spec.exits, spec.parameters, spec.batch_place);
}
void Fields(auto& io, Of<decltype(io), CpuPlacement> placement) {
  io(placement.threads, placement.cores);
}
void Fields(auto& io, Of<decltype(io), Hello> hello) { io(hello.engine, hello.library); }
void Fields(auto& io, Of<decltype(io), HelloAnswer> answer) {
  io(answer.status, answer.name, answer.terminates, answer.tries);
}
void Fields(auto& io, Of<decltype(io), LoadAnswer> answer) {
  io(answer.status, answer.handle, answer.max_batch, answer.inputs, answer.outputs, answer.exits,
     answer.contents);
}
void Fields(auto& io, Of<decltype(io), MemoryUse> use) { io(use.weight_bytes, use.peak_bytes); }
void Fields(auto& io, Of<decltype(io), ArenaUse> arena) {
  io(arena.model, arena.version, arena.bytes, arena.in_use_bytes);
}
void Fields(auto& io, Of<decltype(io), SampleTensor> sample) { io(sample.shape, sample.bytes); }
void Fields(auto& io, Of<decltype(io), RunAnswer::Tensor> tensor) {
  io(tensor.shape, tensor.offset, tensor.bytes, tensor.row_bytes);
}
void Fields(auto& io, Of<decltype(io), RunAnswer> answer) {
  io(answer.status, answer.needs, answer.gather, answer.infer, answer.scatter, answer.misshapen,
     answer.unmapped, answer.cut_jpegs, answer.tensors);
}

std::unexpected<Error> BadAnswer(const char* what);

// The process's whole answer; kInternal where it is none. `what` is its name in the error.
template <class Answer>
Expected<Answer> ReadAnswer(std::span<const std::byte> bytes, const char* what) {
  ByteReader from(bytes);
  auto answer = from.Take<Answer>();
  if (!from.whole()) return BadAnswer(what);
  return answer;
}

// The rows of input i lie one behind the other in memory kInputs, from `offsets[i]` on.
void PutRun(ByteWriter& to, std::uint64_t handle, const BatchJob& job,
            std::span<const std::size_t> offsets, std::uint32_t output_segment);
// A batch's rows as views of that memory. Moves do not disturb them.
struct RunRequest {
  std::uint64_t handle = 0;
  BatchId id;
  ExitId exit;
  std::uint32_t output_segment = 0;
  std::vector<Shape> shapes;
  std::vector<TensorView> views;
  std::vector<RowInputs> rows;
};
// Nothing for bytes beyond `inputs`.
std::optional<RunRequest> TakeRun(ByteReader& from, std::span<const std::byte> inputs);

// What is asked of a model's answers.
struct OutputsAsked {
  std::span<const TensorSpec> outputs;
  bool batches = false;
  std::size_t rows = 1;
};
// The answer's tensors in `memory`, which `storage` owns; kInternal for one that does not fit what
// was asked or lies beyond the memory. Numbers stay where they are: whatever the process makes of
// them later, they are numbers. Strings, whose lengths others follow, are copied before they are
// checked.
Expected<std::shared_ptr<const BatchOutput>> MakeOutput(const RunAnswer& answer,
                                                        const OutputsAsked& asked,
                                                        std::span<const std::byte> memory,
                                                        std::shared_ptr<void> storage);

// Tensors begin where any type may.
inline constexpr std::size_t kAlignment = 64;
inline std::size_t AlignedUp(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}
inline constexpr std::uint32_t kInputs = 0;  // the memory that holds a batch's inputs

}  // namespace tactus::isolated
