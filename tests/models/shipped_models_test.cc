// Every model of models/ loads, answers, and is as accurate as its config.pbtxt states: policies
// trade accuracy by those numbers, and the demo prints them.
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/source_path_for_test.h"
#include "engines/registry.h"
#include "profiling/sample_row.h"
#include "server/kserve/model_config.h"
#include "workload/dataset.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;
const fs::path kModels = fs::path(kSourceDir) / "models";

class Answer final : public Completions {
 public:
  void Done(BatchId, BatchResult&& result) noexcept override { result_ = std::move(result); }
  // ONNX Runtime's engine answers on the thread that submits.
  BatchResult Take() { return *std::move(result_); }

 private:
  std::optional<BatchResult> result_;
};

BatchResult RunRows(Engine& engine, ModelHandle model, int exit, std::span<const RowInputs> rows) {
  Answer answer;
  engine.Submit(model, {BatchId{1}, ModelId{0}, ExitId(static_cast<std::uint32_t>(exit)), rows},
                answer);
  return answer.Take();
}

class ShippedModel : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto engine = MakeEngine("onnxruntime", {});
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = *std::move(engine);
    auto spec = ReadModelSpec(kModels / GetParam(), 1, "");
    ASSERT_TRUE(spec) << spec.error().message;
    spec_ = *std::move(spec);
  }

  std::unique_ptr<Engine> engine_;
  ModelSpec spec_;
};

class EarlyExitModel : public ShippedModel {};

TEST_P(EarlyExitModel, IsAsAccurateAsItsConfigurationStates) {
  const auto images = LoadFashionMnistTest();
  if (!images) GTEST_SKIP() << images.error().message;
  const auto model = engine_->Load(spec_, LaneSpec{});
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_GE(spec_.exits.size(), 3u);
  // models/check_accuracy.py does all 10,000; these keep the test short, and fill whole batches.
  constexpr int kImages = 480;
  ASSERT_EQ(kImages % spec_.max_batch, 0);
  const std::vector<float> pixels = Normalise(*images);
  const std::size_t each = images->pixels_per_image();
  const Shape shape{1, 1, images->rows, images->columns};
  for (int exit = 0; exit < static_cast<int>(spec_.exits.size()); ++exit) {
    int right = 0;
    for (int first = 0; first < kImages; first += spec_.max_batch) {
      std::vector<TensorView> views(static_cast<std::size_t>(spec_.max_batch));
      std::vector<RowInputs> rows;
      for (std::size_t i = 0; i < views.size(); ++i) {
        const float* image = pixels.data() + (static_cast<std::size_t>(first) + i) * each;
        views[i] = {reinterpret_cast<const std::byte*>(image), each * sizeof(float), shape};
        rows.push_back({std::span(&views[i], 1), nullptr});
      }
      const BatchResult result = RunRows(*engine_, *model, exit, rows);
      ASSERT_TRUE(result.status) << result.status.error().message;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const int answer = ArgMax(result.output->tensors[0].Row(i, rows.size()));
        if (answer == images->labels[static_cast<std::size_t>(first) + i]) ++right;
      }
    }
    const double stated = spec_.exits[static_cast<std::size_t>(exit)].accuracy;
    EXPECT_GT(stated, 0.5);
    EXPECT_NEAR(static_cast<double>(right) / kImages, stated,
                3 * std::sqrt(stated * (1 - stated) / kImages))
        << "exit " << exit + 1;
  }
}

TEST_P(EarlyExitModel, DeeperExitsAreMoreAccurate) {
  for (std::size_t i = 1; i < spec_.exits.size(); ++i) {
    EXPECT_GT(spec_.exits[i].accuracy, spec_.exits[i - 1].accuracy);
  }
  EXPECT_GT(spec_.slo, Duration{});
}

INSTANTIATE_TEST_SUITE_P(All, EarlyExitModel, ::testing::Values("ee_s", "ee_m", "ee_l", "ee_mlp"),
                         [](const auto& info) { return info.param; });

class OcrModel : public ShippedModel {
 protected:
  void SetUp() override {
    if (!fs::exists(kModels / GetParam() / "1")) {
      GTEST_SKIP() << "not installed; tools/setup/ocr.sh does that";
    }
    ShippedModel::SetUp();
  }
};

TEST_P(OcrModel, TakesInputsOfTheShapeThatItIsProfiledWith) {
  const auto model = engine_->Load(spec_, LaneSpec{});
  ASSERT_TRUE(model) << model.error().message;
  const auto row = SampleRow::Make(spec_, 1);
  ASSERT_TRUE(row) << row.error().message;
  EXPECT_GT(row->inputs().inputs[0].shape.back(), 1) << "no profile_shape in config.pbtxt";
  const std::vector<RowInputs> rows(2, row->inputs());
  const BatchResult result = RunRows(*engine_, *model, 0, rows);
  ASSERT_TRUE(result.status) << result.status.error().message;
  EXPECT_EQ(result.output->tensors[0].shape[0], 2);
}

// The steps of both pipelines load as their configurations declare them, and fit their samples.
class OperatorModel : public ::testing::TestWithParam<std::string> {};

TEST_P(OperatorModel, LoadsAndRuns) {
  const fs::path folder = kModels / "pipelines" / GetParam();
  if (GetParam() == "read_lines" && !fs::exists(folder / "1")) {
    GTEST_SKIP() << "not installed; tools/setup/ocr.sh does that";
  }
  std::vector<std::string> doubts;
  auto spec = ReadModelSpec(folder, 1, "", {.platforms = {"tactus_op"}, .doubts = &doubts});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_THAT(doubts, ::testing::IsEmpty());
  const auto engine = MakeEngine(spec->platform, {});
  ASSERT_TRUE(engine) << engine.error().message;
  const auto model = (*engine)->Load(*spec, LaneSpec{});
  ASSERT_TRUE(model) << model.error().message;
  const auto row = SampleRow::Make(*spec, 1, **engine, *model);
  ASSERT_TRUE(row) << row.error().message;
  const std::vector<RowInputs> rows(1, row->inputs());
  const BatchResult result = RunRows(**engine, *model, 0, rows);
  ASSERT_TRUE(result.status) << result.status.error().message;
  EXPECT_EQ(result.output->tensors.size(), spec->outputs.size());
}

INSTANTIATE_TEST_SUITE_P(All, OperatorModel,
                         ::testing::Values("text_image", "text_lines", "upright", "read_lines",
                                           "street_image", "persons", "poses"),
                         [](const auto& info) { return info.param; });

INSTANTIATE_TEST_SUITE_P(All, OcrModel, ::testing::Values("ocr_det", "ocr_cls", "ocr_rec"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tactus
