// The main of this test program, which is also the process that isolated engines under test run in,
// and a server that is to be killed.
#include <cstdlib>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "engines/isolated/crashing_engine_test.h"
#include "engines/isolated/process_host.h"
#include "engines/submit_testing.h"

namespace tactus {
namespace {

Expected<std::unique_ptr<Engine>> MakeHosted(const std::string& name, const std::string& library) {
  if (name == testing::kCrashingEngine) return std::make_unique<testing::CrashingEngine>();
  EngineOptions options;
  options.onnxruntime_library = library;
  return MakeEngine(name, options);
}

[[noreturn]] void ServeToBeKilled(int said) {
  auto engine = MakeIsolatedEngine(testing::kCrashingEngine, "", {}).value();
  ModelSpec spec{.name = "numbers", .max_batch = 4};
  spec.inputs = {{"x", DataType::kInt64, {-1, 1}}};
  const ModelHandle model = engine->Load(spec, LaneSpec{}).value();
  const BatchResult result = testing::RunBatch(
      *engine, model, testing::Row().Add<std::int64_t>({1, 1}, {testing::kSayProcess}));
  const auto process =
      static_cast<pid_t>(testing::Values<std::int64_t>(result.output->tensors[0].data)[0]);
  if (write(said, &process, sizeof process) != sizeof process) _exit(1);
  for (;;) pause();
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == tactus::kEngineProcess) {
    tactus::RunEngineProcess(argc, argv, tactus::MakeHosted);
  }
  if (argc > 2 && std::string_view(argv[1]) == tactus::testing::kServerToKill) {
    tactus::ServeToBeKilled(std::atoi(argv[2]));
  }
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
