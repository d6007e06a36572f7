// A program for a ScriptedDriver: its kernels multiply each number by the exit's, counted from 1.
#pragma once

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "engines/cuda/cuda_engine.h"
#include "engines/cuda/scripted_driver_test.h"

namespace tactus::testing {

inline constexpr std::size_t kFakeWeights = 1 << 20;

class FakeProgram final : public DeviceProgram {
 public:
  FakeProgram(ScriptedDriver& driver, CUstream stream) : driver_(driver), stream_(stream) {
    const std::lock_guard lock(driver_.device.mutex);
    driver_.device.occupied += kFakeWeights;
  }
  ~FakeProgram() override {
    const std::lock_guard lock(driver_.device.mutex);
    driver_.device.occupied -= kFakeWeights;
  }

  Expected<DeviceOutputs> Enqueue(ExitId exit, std::span<const DeviceTensor> inputs) override {
    DeviceOutputs outputs;
    auto storage = std::make_shared<std::vector<std::shared_ptr<void>>>();
    for (const DeviceTensor& input : inputs) {
      CUdeviceptr to = 0;
      const Driver& driver = *driver_.driver();
      if (Status ok = Ask(driver, driver.allocate, &to, input.bytes); !ok) {
        return std::unexpected(ok.error());
      }
      storage->emplace_back(nullptr, [this, to](void*) {
        const Driver& table = *driver_.driver();
        (void)Ask(table, table.free, to);
      });
      driver_.device.Launch(stream_, [this, input, to, factor = exit.value() + 1] {
        Multiply(input, to, static_cast<float>(factor));
      });
      outputs.tensors.push_back({to, input.bytes, input.shape});
    }
    outputs.storage = storage;
    return outputs;
  }

 private:
  void Multiply(const DeviceTensor& input, CUdeviceptr to, float factor) {
    const std::byte* const from = driver_.device.At(input.address, input.bytes);
    std::byte* const out = driver_.device.At(to, input.bytes);
    if (from == nullptr || out == nullptr) return driver_.device.Lose();
    for (std::size_t i = 0; i + sizeof(float) <= input.bytes; i += sizeof(float)) {
      float value = 0;
      std::memcpy(&value, from + i, sizeof value);
      value *= factor;
      std::memcpy(out + i, &value, sizeof value);
    }
  }

  ScriptedDriver& driver_;
  const CUstream stream_;
};

// Loads a model whose outputs are as its inputs.
inline ProgramLoader FakeLoader(ScriptedDriver& driver) {
  return [&driver](ModelSpec& spec,
                   const DeviceStream& stream) -> Expected<std::unique_ptr<DeviceProgram>> {
    if (spec.inputs.empty()) return InvalidArgument("it has no input");
    if (spec.outputs.empty()) {
      for (const TensorSpec& input : spec.inputs) {
        spec.outputs.push_back({"out_" + input.name, input.type, input.dims});
      }
    }
    if (spec.exits.empty()) spec.exits.push_back({"1", {}, 0});
    return std::make_unique<FakeProgram>(driver, static_cast<CUstream>(stream.handle));
  };
}

inline CudaOptions FakeCudaOptions(ScriptedDriver& driver) {
  return {.name = "fake", .load = FakeLoader(driver), .power_limit = [](const std::string&) {
            return 700;
          }};
}

}  // namespace tactus::testing
