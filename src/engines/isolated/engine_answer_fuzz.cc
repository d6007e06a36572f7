// Whatever an engine's process may answer: it is refused with a reason, or what comes of it lies
// within the memory that it names. The first byte says to what question.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "engines/isolated/messages.h"

namespace {

using namespace tactus;

// Output by output and row by row, all bytes are read.
std::uint64_t Sum(const BatchOutput& output, std::size_t rows) {
  std::uint64_t sum = 0;
  for (const BatchOutput::Tensor& tensor : output.tensors) {
    for (std::size_t row = 0; row < rows; ++row) {
      for (const std::byte b : tensor.Row(row, rows)) sum += static_cast<std::uint64_t>(b);
    }
  }
  return sum;
}

void ReadRun(std::span<const std::byte> bytes, bool batches) {
  const auto answer = isolated::ReadAnswer<isolated::RunAnswer>(bytes, "output");
  if (!answer) {
    CHECK(!answer.error().message.empty(), "an error says why");
    return;
  }
  std::vector<std::byte> memory(256);
  for (std::size_t i = 0; i < memory.size() && i < bytes.size(); ++i) memory[i] = bytes[i];
  const std::vector<TensorSpec> outputs = {{"n", DataType::kFp32, {-1, -1}},
                                           {"t", DataType::kBytes, {-1}}};
  const std::size_t asked = std::min<std::size_t>(answer->tensors.size(), outputs.size());
  const std::size_t rows = batches ? 2 : 1;
  const auto output = isolated::MakeOutput(
      *answer, {std::span(outputs).first(asked), batches, rows}, memory, nullptr);
  if (output) (void)Sum(**output, rows);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  switch (data[0] % 7) {
    case 0:
      (void)isolated::ReadAnswer<isolated::HelloAnswer>(bytes, "it");
      break;
    case 1:
      (void)isolated::ReadAnswer<isolated::LoadAnswer>(bytes, "it");
      break;
    case 2:
      (void)isolated::ReadAnswer<MemoryUse>(bytes, "it");
      break;
    case 3:
      (void)isolated::ReadAnswer<std::vector<SampleTensor>>(bytes, "it");
      break;
    case 6:
      (void)isolated::ReadAnswer<std::vector<ArenaUse>>(bytes, "it");
      break;
    default:
      ReadRun(bytes, data[0] % 7 == 5);
  }
  return 0;
}
