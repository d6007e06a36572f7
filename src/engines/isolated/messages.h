// What a server and the processes of its engines say to each other. The server asks, the process
// answers; tensors lie in memory that both have (shared_memory.h), messages say where. The server
// believes no answer: each is read within its bytes and then checked against what was asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
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
void Put(ByteWriter& to, const Hello& hello);
Hello TakeHello(ByteReader& from);

struct HelloAnswer {
  Status status;
  std::string name;  // of the engine, with its version
  bool terminates = false;
  bool tries = false;
};
void Put(ByteWriter& to, const HelloAnswer& answer);
Expected<HelloAnswer> ReadHelloAnswer(std::span<const std::byte> bytes);

// Without what no engine reads: the declared configuration, the profile's path, the SLO.
void Put(ByteWriter& to, const ModelSpec& spec, const CpuPlacement& placement);
struct LoadRequest {
  ModelSpec spec;
  CpuPlacement placement;
};
LoadRequest TakeLoadRequest(ByteReader& from);

// What an engine completes of a model.
struct LoadAnswer {
  Status status;
  std::uint64_t handle = 0;
  int max_batch = 0;
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  std::vector<std::string> exits;
  std::uint64_t contents = 0;
};
void Put(ByteWriter& to, const LoadAnswer& answer);
Expected<LoadAnswer> ReadLoadAnswer(std::span<const std::byte> bytes);

void Put(ByteWriter& to, const MemoryUse& use);
Expected<MemoryUse> ReadMemoryUse(std::span<const std::byte> bytes);

void Put(ByteWriter& to, const std::vector<ArenaUse>& arenas);
Expected<std::vector<ArenaUse>> ReadArenas(std::span<const std::byte> bytes);

void Put(ByteWriter& to, const std::vector<SampleTensor>& samples);
Expected<std::vector<SampleTensor>> ReadSamples(std::span<const std::byte> bytes);

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

struct RunAnswer {
  struct Tensor {
    Shape shape;
    std::uint64_t offset = 0;  // in the output's memory
    std::uint64_t bytes = 0;
    std::vector<std::uint64_t> row_bytes;  // of BYTES: each row's, one behind the other
  };
  Status status;
  std::uint64_t needs = 0;  // not 0: so many bytes of memory are needed; then kFetch
  std::vector<Tensor> tensors;
  Duration gather{}, infer{}, scatter{};
  bool misshapen = false;
  std::uint32_t cut_jpegs = 0;
};
void Put(ByteWriter& to, const RunAnswer& answer);
Expected<RunAnswer> ReadRunAnswer(std::span<const std::byte> bytes);

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
