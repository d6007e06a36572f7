// Lines "KEY VALUE" as a model's parameters: a chain is refused with a reason, or it runs on its
// own sample.
#include <cstdint>
#include <sstream>
#include <string>

#include "base/check.h"
#include "engines/op/chain.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tactus::ModelSpec spec;
  spec.name = "m";
  std::istringstream lines(std::string(reinterpret_cast<const char*>(data), size));
  for (std::string key, value; lines >> key && std::getline(lines >> std::ws, value);) {
    spec.parameters[key] = value;
  }
  const auto chain = tactus::op::Chain::Make(spec);
  if (!chain) {
    CHECK(!chain.error().message.empty(), "an error says why");
    return 0;
  }
  // Each pixel of a crop costs time; what is fuzzed is the reading of arguments.
  std::int64_t work = 0;
  for (const auto& output : spec.outputs) {
    std::int64_t elements = 1;
    for (const std::int64_t dim : output.dims) elements *= dim > 0 ? dim : 8;
    work += elements;
  }
  if (work < 1 << 20) (void)chain->Run(chain->Sample());
  return 0;
}
