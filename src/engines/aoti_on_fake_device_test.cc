// AOTInductor packages through the engine for devices. There is no device: the packages are
// compiled for the processor, and the fake device's memory is the host's.
//
//   models/export_aoti.py ee_s --device cpu --out DIR
//   AOTI_MODELS=DIR tactus_engines_test --gtest_filter='Aoti*'
#if defined(TACTUS_HAVE_AOTI) && defined(TACTUS_HAVE_CUDA)
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/source_path_for_test.h"
#include "engines/aoti/aoti_program.h"
#include "engines/cuda/cuda_engine.h"
#include "engines/cuda/scripted_driver_test.h"
#include "engines/registry.h"
#include "engines/submit_testing.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;
using testing::Row;
using testing::RunBatch;
using testing::ScriptedDriver;
using testing::Values;

ModelSpec SmallNet(const std::filesystem::path& folder, const std::string& ending) {
  ModelSpec spec{.name = "ee_s", .max_batch = 10};
  spec.inputs = {{"input", DataType::kFp32, {-1, 1, 28, 28}}};
  spec.outputs = {{"logits", DataType::kFp32, {-1, 10}}};
  for (const char* exit : {"1", "2", "3", "4"}) {
    spec.exits.push_back({exit, folder / ("exit" + std::string(exit) + ending), 0});
  }
  return spec;
}

std::vector<float> Noise(std::uint64_t seed) {
  Rng rng = Rng::Stream(seed, "aoti/noise");
  std::vector<float> numbers(28 * 28);
  for (float& number : numbers) number = static_cast<float>(rng.Normal());
  return numbers;
}

// The fake device copies from no memory but its own, and PyTorch has put the answer into the
// host's.
class InDeviceMemory final : public DeviceProgram {
 public:
  InDeviceMemory(std::unique_ptr<DeviceProgram> program, std::shared_ptr<const Driver> driver)
      : program_(std::move(program)), driver_(std::move(driver)) {}
  Expected<DeviceOutputs> Enqueue(ExitId exit, std::span<const DeviceTensor> inputs) override {
    auto outputs = program_->Enqueue(exit, inputs);
    if (!outputs) return outputs;
    auto moved = std::make_shared<std::vector<std::shared_ptr<void>>>();
    for (DeviceTensor& tensor : outputs->tensors) {
      CUdeviceptr to = 0;
      if (Status ok = Ask(*driver_, driver_->allocate, &to, tensor.bytes); !ok) {
        return std::unexpected(ok.error());
      }
      moved->emplace_back(nullptr,
                          [driver = driver_, to](void*) { (void)Ask(*driver, driver->free, to); });
      std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(tensor.address),
                  tensor.bytes);
      tensor.address = to;
    }
    outputs->storage = std::move(moved);
    return outputs;
  }

 private:
  const std::unique_ptr<DeviceProgram> program_;
  const std::shared_ptr<const Driver> driver_;
};

class AotiOnFakeDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("AOTI_MODELS");
    if (folder == nullptr) {
      GTEST_SKIP() << "AOTI_MODELS names no folder that models/export_aoti.py has made";
    }
    folder_ = folder;
  }
  Expected<std::unique_ptr<Engine>> Make() {
    auto programs = MakeAotiPrograms(AotiTarget::kHost);
    if (!programs) return std::unexpected(programs.error());
    return MakeCudaEngine(script_.driver(), {.name = programs->name,
                                             .load = Load(programs->load),
                                             .power_limit = [](const std::string&) { return 0; }});
  }

  ProgramLoader Load(ProgramLoader load) {
    return [this, load = std::move(load)](
               ModelSpec& spec,
               const DeviceStream& stream) -> Expected<std::unique_ptr<DeviceProgram>> {
      auto program = load(spec, stream);
      if (!program) return program;
      return std::make_unique<InDeviceMemory>(*std::move(program), script_.driver());
    };
  }

  ScriptedDriver script_;
  std::filesystem::path folder_;
};

// Each exit, in batches that differ: what the ONNX graph of the same exit answers.
TEST_F(AotiOnFakeDevice, AnswersAsTheGraphThatItWasExportedFrom) {
  auto engine = Make();
  ASSERT_TRUE(engine) << engine.error().message;
  ModelSpec spec = SmallNet(folder_ / "ee_s" / "1", ".pt2");
  const auto model = (*engine)->Load(spec, LaneSpec{});
  ASSERT_TRUE(model) << model.error().message;
  auto onnx = MakeEngine("onnxruntime", {});
  ASSERT_TRUE(onnx) << onnx.error().message;
  ModelSpec graph = SmallNet(std::filesystem::path(kSourceDir) / "models/ee_s/1", ".onnx");
  const auto beside = (*onnx)->Load(graph, LaneSpec{});
  ASSERT_TRUE(beside) << beside.error().message;
  for (const std::size_t batch : {1, 2, 10}) {
    std::vector<Row> rows;
    for (std::size_t i = 0; i < batch; ++i)
      rows.push_back(Row().Add<float>({1, 1, 28, 28}, Noise(i)));
    for (int exit = 0; exit < 4; ++exit) {
      const BatchResult answer = RunBatch(**engine, *model, rows, exit);
      ASSERT_TRUE(answer.status) << answer.status.error().message;
      const BatchResult expected = RunBatch(**onnx, *beside, rows, exit);
      ASSERT_TRUE(expected.status) << expected.status.error().message;
      EXPECT_EQ(answer.output->tensors[0].shape, expected.output->tensors[0].shape);
      const auto got = Values<float>(answer.output->tensors[0].data);
      const auto wanted = Values<float>(expected.output->tensors[0].data);
      ASSERT_EQ(got.size(), wanted.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_LE(std::abs(got[i] - wanted[i]), 1e-3) << "exit " << exit + 1 << " batch " << batch;
      }
    }
  }
  engine->reset();
  EXPECT_EQ(script_.device.Leaks(), "");
}

TEST_F(AotiOnFakeDevice, AFileThatIsNoPackageIsNamed) {
  auto engine = Make().value();
  ModelSpec spec = SmallNet(folder_ / "nowhere", ".pt2");
  const auto model = engine->Load(spec, LaneSpec{});
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("exit1.pt2: no AOTInductor package that runs here"));
  EXPECT_THAT(model.error().message, HasSubstr("models/export_aoti.py"));
}

TEST_F(AotiOnFakeDevice, AModelThatStatesNoTensorsIsRefused) {
  auto engine = Make().value();
  ModelSpec spec = SmallNet(folder_ / "ee_s" / "1", ".pt2");
  spec.outputs.clear();
  const auto model = engine->Load(spec, LaneSpec{});
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("states no input or no output"));
}

TEST(AotiEngine, WithoutADeviceSaysWhatIsMissing) {
  const auto engine = MakeEngine("aoti", {});
  ASSERT_FALSE(engine);
  EXPECT_THAT(engine.error().message, HasSubstr("--device"));
}

}  // namespace
}  // namespace tactus
#endif
