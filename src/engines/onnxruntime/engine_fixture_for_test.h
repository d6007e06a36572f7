// For tests: an ONNX Runtime engine, and why it refuses a model.
#pragma once

#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "engines/onnxruntime/onnxruntime_engine.h"

namespace tactus {

class OnnxEngineFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    auto engine = MakeOnnxRuntimeEngine({});
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = *std::move(engine);
  }

  Error LoadError(ModelSpec spec) {
    const auto handle = engine_->Load(spec, LaneSpec{});
    EXPECT_FALSE(handle);
    return handle ? Error{} : handle.error();
  }

  std::unique_ptr<Engine> engine_;
};

}  // namespace tactus
