// What each operator costs on its own sample: a picture of 768 x 576, five objects.
#include <map>
#include <string>

#include <benchmark/benchmark.h>

#include "engines/op/chain.h"

namespace tactus::op {
namespace {

std::map<std::string, std::string> ArgumentsOf(const std::string& name) {
  std::map<std::string, std::string> arguments{{"op", name}};
  if (name == "crop" || name == "letterbox" || name == "resize") {
    arguments[name + ".height"] = name == "crop" ? "193" : "416";
    arguments[name + ".width"] = name == "crop" ? "129" : "416";
  }
  return arguments;
}

void Operators(benchmark::State& state) {
  const std::string name(OperatorKinds()[static_cast<std::size_t>(state.range(0))].name);
  ModelSpec spec;
  spec.parameters = ArgumentsOf(name);
  const auto chain = Chain::Make(spec);
  if (!chain) return state.SkipWithError("it needs a file");  // ctc's alphabet
  const std::vector<Tensor> inputs = chain->Sample();
  for (auto _ : state) benchmark::DoNotOptimize(chain->Run(inputs));
  state.SetLabel(name);
}
BENCHMARK(Operators)->DenseRange(0, static_cast<int>(OperatorKinds().size()) - 1);

}  // namespace
}  // namespace tactus::op
