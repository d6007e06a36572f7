// What is assumed of a graph: without these, rows that depend on each other would be run together,
// and everybody would get answers that depend on strangers' requests.
#include "profiling/model_trial.h"

#include <cmath>
#include <cstring>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiling/sample_row.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Rows of numbers, as a graph sees them; nothing: it does not run.
using Table = std::vector<std::vector<float>>;
using Graph = std::function<std::optional<Table>(const Table&)>;

// Takes one row of floats for each row of the batch, and gives what `graph` gives.
class GraphEngine final : public Engine {
 public:
  explicit GraphEngine(Graph graph) : graph_(std::move(graph)) {}

  EngineTraits traits() const override { return {.name = "graph", .tries = true}; }
  Expected<ModelHandle> Load(ModelSpec& spec, const LaneSpec&) override {
    if (spec.max_batch < 0) spec.max_batch = 4;
    batches_ = spec.max_batch > 0;
    ++loaded;
    return ModelHandle{1};
  }
  void Unload(ModelHandle) override { --loaded; }
  void Submit(ModelHandle, const BatchJob& job, Completions& done) noexcept override {
    Table rows;
    for (const RowInputs& row : job.rows) {
      auto& values = rows.emplace_back(row.inputs[0].bytes / sizeof(float));
      std::memcpy(values.data(), row.inputs[0].data, row.inputs[0].bytes);
    }
    const auto answer = graph_(rows);
    if (!answer) return done.Done(job.id, {.status = Internal("the graph refuses it")});
    if (batches_ && answer->size() != rows.size()) {
      return done.Done(
          job.id, {.status = Internal("output 0 has " + std::to_string(answer->size()) + " rows"),
                   .misshapen = true});
    }
    auto numbers = std::make_shared<std::vector<float>>();
    for (const auto& row : *answer) numbers->insert(numbers->end(), row.begin(), row.end());
    auto output = std::make_shared<BatchOutput>();
    output->tensors.push_back(
        {{static_cast<std::int64_t>(answer->size()),
          static_cast<std::int64_t>(answer->empty() ? 0 : answer->front().size())},
         std::as_bytes(std::span(*numbers))});
    output->storage = numbers;
    done.Done(job.id, {.output = std::move(output)});
  }

  int loaded = 0;

 private:
  const Graph graph_;
  bool batches_ = false;
};

ModelSpec GraphSpec(int max_batch, Shape dims = {-1, 8}) {
  ModelSpec spec{.name = "m", .max_batch = max_batch};
  spec.inputs = {{"x", DataType::kFp32, std::move(dims)}};
  spec.outputs = {{"y", DataType::kFp32, {-1, -1}}};
  spec.exits = {{"1", {}, 0}};
  return spec;
}

Expected<TriedModel> TryGraph(GraphEngine& engine, ModelSpec spec) {
  const LaneSpec lane;
  return LoadTried(std::move(spec), engine, {&lane, 1}, BatchId{0});
}

// Each element on its own, by `change` of it and of the whole batch's mean.
Graph Each(std::function<float(float, float)> change) {
  return [change](const Table& rows) {
    float sum = 0;
    std::size_t count = 0;
    for (const auto& row : rows) {
      for (const float value : row) sum += value, ++count;
    }
    Table out = rows;
    for (auto& row : out) {
      for (float& value : row) value = change(value, sum / static_cast<float>(count));
    }
    return std::optional(out);
  };
}

std::string Said(const TriedModel& tried) {
  std::string all;
  for (const std::string& line : tried.said) all += line + "\n";
  return all;
}

TEST(ModelTrial, RowsThatMindTheirOwnBusinessAreABatch) {
  GraphEngine engine(Each([](float x, float) { return std::tanh(x) * 3; }));
  const auto tried = TryGraph(engine, GraphSpec(-1));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 4);
  EXPECT_EQ(tried->spec.batch_origin, BatchOrigin::kAssumed);
  EXPECT_THAT(Said(*tried), HasSubstr("max_batch_size is 4"));
  EXPECT_EQ(engine.loaded, 1);
}

// Kernels add up in another order for other numbers of rows.
TEST(ModelTrial, RoundingIsNoDependence) {
  int run = 0;
  GraphEngine engine([&run](const Table& rows) {
    Table out = rows;
    ++run;
    for (auto& row : out) {
      for (float& value : row) value *= 1 + 1e-5f * static_cast<float>(rows.size() + run % 2);
    }
    return std::optional(out);
  });
  const auto tried = TryGraph(engine, GraphSpec(-1));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 4);
}

void ExpectNoBatch(Graph graph, const char* why) {
  GraphEngine engine(std::move(graph));
  const auto tried = TryGraph(engine, GraphSpec(-1));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 0);
  EXPECT_THAT(Said(*tried), HasSubstr("does not run in batches"));
  EXPECT_THAT(Said(*tried), HasSubstr(why));
  EXPECT_FALSE(tried->untried);
  EXPECT_EQ(engine.loaded, 1) << "the trial's own is unloaded";
}

TEST(ModelTrial, RowsThatDependOnEachOtherAreNone) {
  constexpr const char* kDepends = "answers depend on what else is in the batch: up to";
  ExpectNoBatch(Each([](float x, float mean) { return x - mean; }), kDepends);
  // A hundredth of it, as of a scale that is that of the whole tensor.
  ExpectNoBatch(Each([](float x, float mean) { return x - 0.01f * mean; }), kDepends);
  // The first row of a batch is like one alone: a running sum.
  ExpectNoBatch(
      [](const Table& rows) {
        Table out = rows;
        for (std::size_t r = 1; r < out.size(); ++r) {
          for (std::size_t i = 0; i < out[r].size(); ++i) out[r][i] += out[r - 1][i];
        }
        return std::optional(out);
      },
      kDepends);
  // The last is: a running sum from behind.
  ExpectNoBatch(
      [](const Table& rows) {
        Table out = rows;
        for (std::size_t r = out.size() - 1; r > 0; --r) {
          for (std::size_t i = 0; i < out[r].size(); ++i) out[r - 1][i] += out[r][i];
        }
        return std::optional(out);
      },
      kDepends);
  // Only three are too many.
  ExpectNoBatch(
      [](const Table& rows) {
        Table out = rows;
        if (rows.size() > 2) out[0] = rows[1];
        return std::optional(out);
      },
      kDepends);
}

TEST(ModelTrial, RowsOfAnotherNumberAreNone) {
  ExpectNoBatch(
      [](const Table& rows) {
        Table out;
        for (const float value : rows[0]) out.push_back({value});
        return std::optional(out);
      },
      "8 rows");
  ExpectNoBatch([](const Table& rows) { return std::optional(Table{rows[0]}); }, "1 rows");
}

TEST(ModelTrial, RowsThatDoNotRunTogetherAreNone) {
  ExpectNoBatch(
      [](const Table& rows) { return rows.size() == 1 ? std::optional(rows) : std::nullopt; },
      "the graph refuses it");
}

TEST(ModelTrial, AnswersOfChanceSayNothing) {
  float next = 0;
  GraphEngine engine(
      Each([&next](float, float) { return next = std::fmod(next * 7 + 3, 101.0f); }));
  const auto tried = TryGraph(engine, GraphSpec(-1));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 4);
}

TEST(ModelTrial, ADeclaredBatchStaysAndItsOwnerHearsHowFarAnswersDepend) {
  GraphEngine engine(Each([](float x, float mean) { return x - mean; }));
  ModelSpec spec = GraphSpec(8);
  spec.batch_place = "m/config.pbtxt:3:1";
  const auto tried = TryGraph(engine, spec);
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 8);
  EXPECT_EQ(tried->spec.batch_origin, BatchOrigin::kDeclared);
  EXPECT_THAT(Said(*tried), HasSubstr("m/config.pbtxt:3:1"));
  EXPECT_THAT(Said(*tried), HasSubstr("answers depend on what else is in the batch: up to"));
}

TEST(ModelTrial, ADeclaredBatchThatNoValuesSatisfyIsAnErrorAtItsLine) {
  GraphEngine engine([](const Table& rows) {
    return std::optional(Table(30 * rows.size(), std::vector<float>{1}));
  });
  ModelSpec spec = GraphSpec(8);
  spec.batch_place = "m/config.pbtxt:3:1";
  const auto tried = TryGraph(engine, spec);
  ASSERT_FALSE(tried);
  EXPECT_THAT(tried.error().message, HasSubstr("m/config.pbtxt:3:1: max_batch_size: 8"));
  EXPECT_THAT(tried.error().message, HasSubstr("state 0"));
  EXPECT_EQ(engine.loaded, 0);
}

// As NonZero: other values might do.
TEST(ModelTrial, ADeclaredBatchWhoseRowsDependOnValuesIsDoubted) {
  GraphEngine engine([](const Table& rows) {
    Table out;
    for (const auto& row : rows) {
      for (const float value : row) {
        if (value != 0) out.push_back({value});
      }
    }
    return std::optional(out);
  });
  const auto tried = TryGraph(engine, GraphSpec(8));
  ASSERT_TRUE(tried) << tried.error().message;
  EXPECT_THAT(Said(*tried), HasSubstr("not all batches run"));
}

TEST(ModelTrial, OpenDimensionsTakeTheFirstSizeThatRuns) {
  GraphEngine engine([](const Table& rows) {
    return rows[0].size() >= 3 * 100 * 100 ? std::optional(rows) : std::nullopt;
  });
  const auto tried = TryGraph(engine, GraphSpec(-1, {-1, 3, -1, -1}));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 4);
  EXPECT_EQ(tried->spec.found_shapes.at("x"), (Shape{1, 3, 224, 224}));
  EXPECT_THAT(tried->sizes, HasSubstr("[3,224,224]"));
  EXPECT_THAT(tried->sizes, HasSubstr("profile_shape.x"));
}

// Such a row was too small for the graph, which makes nothing of it.
TEST(ModelTrial, ARowOfWhichNothingIsLeftIsNotTaken) {
  GraphEngine engine([](const Table& rows) {
    return std::optional(rows[0].size() < 16 ? Table(rows.size()) : rows);
  });
  const auto tried = TryGraph(engine, GraphSpec(-1, {-1, -1}));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.found_shapes.at("x"), (Shape{1, 16}));
}

TEST(ModelTrial, DimensionsOfOneNameHaveTheSizeThatIsStatedOfOne) {
  GraphEngine engine([](const Table& rows) { return std::optional(rows); });
  ModelSpec spec = GraphSpec(4, {-1, -1});
  spec.inputs[0].dim_names = {"batch", "time"};
  spec.inputs.push_back({"mask", DataType::kFp32, {-1, -1, -1}});
  spec.inputs[1].dim_names = {"batch", "time", "heads"};
  spec.parameters["profile_shape.x"] = "50";
  const auto tried = TryGraph(engine, spec);
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.found_shapes.at("mask"), (Shape{1, 50, 2}));
}

TEST(ModelTrial, WhatCannotBeTriedIsNotSaidToDependOnAnything) {
  GraphEngine engine([](const Table&) { return std::optional<Table>(); });
  const auto tried = TryGraph(engine, GraphSpec(-1, {-1, -1}));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 0);
  EXPECT_TRUE(tried->untried);
  EXPECT_THAT(Said(*tried), HasSubstr("could not be tried"));
  EXPECT_THAT(Said(*tried), HasSubstr("profile_shape"));
  EXPECT_THAT(Said(*tried), Not(HasSubstr("does not run in batches")));
}

// A detector's list of the best: rounding swaps two near ties in one of the trial's rounds.
TEST(ModelTrial, AFewNumbersInOneRoundAreNoDependence) {
  int batches = 0;
  GraphEngine engine([&batches](const Table& rows) {
    Table out = rows;
    if (rows.size() > 1 && ++batches == 2) std::swap(out[0][0], out[0][1]);
    return std::optional(out);
  });
  const auto tried = TryGraph(engine, GraphSpec(-1, {-1, 300}));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 4);
}

}  // namespace
}  // namespace tactus
