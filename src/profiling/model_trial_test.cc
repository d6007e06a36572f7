// What is assumed of a graph: without these, rows that depend on each other would be run together,
// and everybody would get answers that depend on strangers' requests.
#include "profiling/model_trial.h"

#include <cmath>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "profiling/graph_engine_for_test.h"

namespace tactus {
namespace {

using ::testing::ContainsRegex;
using testing::Each;
using testing::Graph;
using testing::GraphEngine;
using testing::GraphSpec;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Said;
using testing::Table;
using testing::TryGraph;
using testing::TwoOutputs;

TEST(ModelTrial, RowsThatMindTheirOwnBusinessAreABatch) {
  GraphEngine engine(Each([](float x, float) { return std::tanh(x) * 3; }));
  const auto tried = TryGraph(engine, GraphSpec(-1));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 4);
  EXPECT_EQ(tried->spec.batch_origin, BatchOrigin::kAssumed);
  EXPECT_THAT(Said(*tried), HasSubstr("max_batch_size is 4"));
  EXPECT_EQ(engine.loaded, 1);
}

// Else files that were exchanged without a load would serve untried, as soon as a lane is loaded
// anew.
TEST(ModelTrial, FilesThatChangedSinceTheTrialAreNotLoaded) {
  GraphEngine engine(Each([](float x, float) { return x; }));
  const auto tried = TryGraph(engine, GraphSpec(-1));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.contents, 1u);
  ModelSpec spec = tried->spec;
  EXPECT_TRUE(LoadOnLane(spec, engine, LaneSpec{}));
  engine.contents = 2;
  const auto again = LoadOnLane(spec, engine, LaneSpec{});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, kFilesChanged);
  EXPECT_THAT(again.error().message, HasSubstr("its files have changed since it was loaded"));
  EXPECT_EQ(engine.loaded, 2) << "what was refused is unloaded";
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
  // So little of it that only the neighbours show it: beside a row of larger numbers it is much.
  ExpectNoBatch(Each([](float x, float mean) { return x - 2e-5f * mean; }), kDepends);
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

// Of a quantized classifier, few rows are so near to another label that the others decide.
TEST(ModelTrial, LabelsThatSeldomDependOnTheOthersAreNone) {
  const auto labels = [](float weight) {
    // No -0, whose bits are another label's.
    return Each([weight](float x, float mean) { return std::floor(x + weight * mean) + 0.0f; });
  };
  for (const float weight : {0.0f, 3e-3f}) {
    GraphEngine engine(labels(weight));
    ModelSpec spec = GraphSpec(-1);
    spec.outputs[0].type = DataType::kInt32;
    const auto tried = TryGraph(engine, spec);
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->spec.max_batch, weight > 0 ? 0 : 4) << Said(*tried);
  }
}

// As floats, beside an output that is another for each row, and where a table's row is the answer.
TEST(ModelTrial, LabelsThatSeldomDependOnTheOthersAreNoneWhateverTheyAreWrittenAs) {
  const auto label = [](float x, float mean) { return std::floor(x + 3e-3f * mean); };
  const auto of_table = [label](float x, float mean) { return std::sin(label(x, mean)); };
  const auto of_row = [](const Graph& graph) -> Graph {
    return [graph](const Table& rows) {
      Table out = *graph(rows);
      for (auto& row : out) row.resize(1);  // or no two rows would be alike
      return std::optional(out);
    };
  };
  const Graph plain = Each([](float x, float) { return std::sin(x); });
  for (const Graph& graph : {Each(label), of_row(Each(label)), of_row(Each(of_table))}) {
    GraphEngine alone(graph);
    const auto tried = TryGraph(alone, GraphSpec(-1));
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->spec.max_batch, 0) << Said(*tried);
    GraphEngine beside(graph, plain);
    const auto both = TryGraph(beside, TwoOutputs(-1));
    ASSERT_TRUE(both);
    EXPECT_EQ(both->spec.max_batch, 0) << Said(*both);
  }
  GraphEngine independent(Each([](float x, float) { return std::floor(x); }), plain);
  const auto tried = TryGraph(independent, TwoOutputs(-1));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 4) << Said(*tried);
}

// Each row on its own, by its first number, its place and the number of rows.
Graph ByPlace(std::function<float(float, std::size_t, std::size_t)> change) {
  return [change](const Table& rows) {
    Table out;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      out.push_back({change(rows[r][0], r, rows.size())});
    }
    return std::optional(out);
  };
}

// Where a row's neighbours make no difference, and its place or their number does.
TEST(ModelTrial, LabelsThatSeldomDependOnTheirPlaceOrTheNumberOfRowsAreNone) {
  const auto no = [](float x, std::size_t, std::size_t) { return std::floor(10 * x); };
  const auto place = [](float x, std::size_t r, std::size_t) {
    return std::floor(10 * x + 0.01f * static_cast<float>(r));
  };
  const auto count = [](float x, std::size_t, std::size_t n) {
    return std::floor(10 * x + 0.01f / static_cast<float>(n));
  };
  const std::pair<Graph, int> table[] = {
      {ByPlace(no), 4}, {ByPlace(place), 0}, {ByPlace(count), 0}};
  for (const auto& [graph, batch] : table) {
    GraphEngine engine(graph);
    const auto tried = TryGraph(engine, GraphSpec(-1));
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->spec.max_batch, batch) << Said(*tried);
  }
}

// No output looks like labels: a number that is another for each row stands beside one.
TEST(ModelTrial, LabelsInsideOfOtherNumbersAreFoundWhereTheGraphDecides) {
  const TemporaryFolder folder;
  ModelSpec spec = GraphSpec(-1);
  spec.exits[0].graph = folder / "model.onnx";
  std::ofstream(spec.exits[0].graph) << "... DynamicQuantizeLinear ...";
  GraphEngine engine(Each([](float x, float mean) {
    const float label = std::floor(10 * (x + 1e-4f * mean));
    return std::sin(x) + label;
  }));
  const auto tried = TryGraph(engine, spec);
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 0) << Said(*tried);
}

// The quiet row's answer is another then, by less than the loud one's size would explain.
TEST(ModelTrial, AThresholdThatALoudNeighbourPassesIsFound) {
  for (const float threshold : {25.0f, -25.0f, 60.0f}) {
    ExpectNoBatch(
        [threshold](const Table& rows) {
          bool passed = false;
          for (const auto& row : rows) {
            for (const float value : row) {
              passed = passed || (threshold > 0 ? value > threshold : value < threshold);
            }
          }
          Table out = rows;
          for (auto& row : out) {
            for (float& value : row) value *= passed ? 2.0f : 1.0f;
          }
          return std::optional(out);
        },
        kDepends);
  }
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

// Its first rows differ a little only.
TEST(ModelTrial, OfADeclaredBatchTheLargestDifferenceIsSaid) {
  GraphEngine engine(Each([](float x, float mean) {
    const float apart = x - mean;
    return apart < 20 ? x + apart / 1024 : x + 1000;
  }));
  const auto tried = TryGraph(engine, GraphSpec(8));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 8);
  EXPECT_THAT(Said(*tried), ContainsRegex("up to (1e\\+03|9\\.[0-9]e\\+02)"));
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
  EXPECT_TRUE(tried->spec.rows_in_front) << "they may be a batch yet";
}

// Else the same request would have another answer as soon as a real call has shown a row.
TEST(ModelTrial, WhatTheFirstDimensionWasTakenForStays) {
  const auto centred = [](const Table& rows) -> std::optional<Table> {
    if (rows[0].size() != 80) return std::nullopt;
    Table mean(rows.size(), rows[0]);
    for (std::size_t r = 1; r < rows.size(); ++r) mean[r] = mean[0];
    return mean;
  };
  GraphEngine engine(centred);
  ModelSpec spec = TryGraph(engine, GraphSpec(-1, {-1, -1}))->spec;
  EXPECT_TRUE(spec.rows_in_front);
  spec.max_batch = -1;
  spec.found_shapes = {{"x", {1, 80}}};
  const auto shown = TryGraph(engine, spec);
  ASSERT_TRUE(shown);
  EXPECT_FALSE(shown->undecided);
  EXPECT_EQ(shown->spec.max_batch, 0);
  EXPECT_TRUE(shown->spec.rows_in_front);
  ModelSpec fresh = GraphSpec(-1, {-1, -1});
  fresh.found_shapes = {{"x", {1, 80}}};
  EXPECT_FALSE(TryGraph(engine, fresh)->spec.rows_in_front);
}

// Without this a batch that was declared and false was served for good, with no word of its line.
TEST(ModelTrial, ADeclaredBatchThatNoRowFitsIsTriedWithTheShapesOfACall) {
  GraphEngine engine([](const Table& rows) -> std::optional<Table> {
    if (rows[0].size() != 80) return std::nullopt;
    Table mean(rows.size(), rows[0]);
    for (std::size_t r = 1; r < rows.size(); ++r) mean[r] = mean[0];
    return mean;
  });
  ModelSpec spec = GraphSpec(4, {-1, -1});
  spec.batch_place = "m/config.pbtxt:3:1";
  const auto tried = TryGraph(engine, spec);
  ASSERT_TRUE(tried);
  EXPECT_TRUE(tried->untried);
  EXPECT_THAT(Said(*tried), HasSubstr("m/config.pbtxt:3:1: max_batch_size is 4, and whether its "
                                      "rows depend on each other is not known"));
  spec.found_shapes = {{"x", {1, 80}}};
  const auto again = TryGraph(engine, spec);
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->untried);
  EXPECT_THAT(Said(*again), HasSubstr("answers depend on what else is in the batch"));
  spec.found_shapes = {{"x", {1, 40}}};
  const auto in_vain = TryGraph(engine, spec);
  ASSERT_TRUE(in_vain);
  EXPECT_FALSE(in_vain->untried) << "it would be tried with each call";
}

// A picture's range is told by its numbers, and a whole batch's by those of one row in it.
TEST(ModelTrial, ARangeThatAllRowsDecideTogetherIsADependence) {
  for (const bool zeros : {false, true}) {
    GraphEngine engine([zeros](const Table& rows) {
      bool found = false;
      for (const auto& row : rows) {
        for (const float x : row) found = found || (zeros ? x != 0 : x < 0);
      }
      Table table = rows;
      for (auto& row : table) {
        for (float& x : row) x = found ? x : 2 * x + 1;
      }
      return std::optional(table);
    });
    const auto tried = TryGraph(engine, GraphSpec(-1, {-1, 64}));
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->spec.max_batch, 0) << zeros;
    EXPECT_THAT(Said(*tried), HasSubstr("answers depend on what else is in the batch"));
  }
}

// A detector's list of the best: rounding swaps two near ties in one of the trial's rounds, where
// their row stands in another place.
TEST(ModelTrial, AFewNumbersInOneRoundAreNoDependence) {
  int batches = 0;
  GraphEngine engine([&batches](const Table& rows) {
    Table out = rows;
    if (rows.size() > 1 && ++batches == 3) std::swap(out[0][0], out[0][1]);
    return std::optional(out);
  });
  const auto tried = TryGraph(engine, GraphSpec(-1, {-1, 300}));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 4);
}

// Of the logarithm or root of what is negative, no rows could differ.
TEST(ModelTrial, WhatIsNoNumberProvesNothing) {
  constexpr const char* kDepends = "answers depend on what else is in the batch";
  // Of each row, less the mean of all: NaN as soon as one number is negative.
  for (float (*const change)(float) :
       {+[](float x) { return std::log(x); }, +[](float x) { return std::sqrt(x); },
        +[](float x) { return std::acos(x); }}) {
    ExpectNoBatch(
        [change](const Table& rows) {
          Table out = rows;
          for (auto& row : out) {
            for (float& value : row) value = change(value);
          }
          return Each([](float x, float mean) { return x - mean; })(out);
        },
        kDepends);
    GraphEngine apart(Each([change](float x, float) { return change(x); }));
    const auto tried = TryGraph(apart, GraphSpec(-1));
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->spec.max_batch, 4);
  }
}

TEST(ModelTrial, ABatchOfWhichNothingIsShownIsNotAssumed) {
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  const Graph none = Each([=](float, float) { return kNone; });
  const Graph same = Each([](float, float) { return 7.0f; });
  const Graph fine = Each([](float x, float) { return 2 * x; });
  for (const auto& [first, second, most] : {std::tuple(none, fine, 0), std::tuple(same, none, 0),
                                            std::tuple(same, same, 0), std::tuple(fine, same, 4)}) {
    GraphEngine engine(first, second);
    const auto tried = TryGraph(engine, TwoOutputs(-1));
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->spec.max_batch, most);
    EXPECT_EQ(Said(*tried).contains("could not be tried"), most == 0) << Said(*tried);
    GraphEngine again(first, second);
    const auto declared = TryGraph(again, TwoOutputs(8));
    ASSERT_TRUE(declared);
    EXPECT_EQ(declared->spec.max_batch, 8);
    EXPECT_EQ(Said(*declared).contains("could not be tried"), most == 0) << Said(*declared);
  }
}

// Beside the number of a mask, any other is small.
TEST(ModelTrial, AMaskHidesNoDependence) {
  for (const float mask : {-1e9f, std::numeric_limits<float>::lowest(), -65504.0f}) {
    for (const std::size_t every : {2, 3}) {
      const auto masked = [=](bool depends) {
        return [=](const Table& rows) {
          auto out = Each([=](float x, float mean) { return x - (depends ? mean / 10 : 0); })(rows);
          for (auto& row : *out) {
            for (std::size_t i = 0; i < row.size(); ++i) {
              if (i % every != 1) row[i] = mask;
            }
          }
          return out;
        };
      };
      ExpectNoBatch(masked(true), "answers depend on what else is in the batch: up to");
      GraphEngine apart(masked(false));
      const auto tried = TryGraph(apart, GraphSpec(-1));
      ASSERT_TRUE(tried);
      EXPECT_EQ(tried->spec.max_batch, 4);
    }
  }
}

// Where large numbers cancel each other, what is left is noise.
TEST(ModelTrial, RoundingOfNumbersNearZeroIsNoDependence) {
  GraphEngine engine([](const Table& rows) {
    Table out = rows;
    for (auto& row : out) {
      float most = 0;
      for (const float value : row) most = std::max(most, std::abs(value));
      for (std::size_t i = 0; i < row.size(); i += 2) {
        row[i] = most * 1e-6f * static_cast<float>(rows.size());
      }
    }
    return std::optional(out);
  });
  const auto tried = TryGraph(engine, GraphSpec(-1));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 4);
}

Graph ScaledWhereAnyIsAbove(float most) {
  return [most](const Table& rows) {
    float largest = 0;
    for (const auto& row : rows) {
      for (const float value : row) largest = std::max(largest, value);
    }
    return Each([=](float x, float) { return x / (largest > most ? most : 1); })(rows);
  };
}

// As a graph that takes pictures of 255 and of 1, or integers of 8 and of 16 bits.
TEST(ModelTrial, WhatOnlyLargeNumbersShowIsTried) {
  for (const DataType type : {DataType::kFp32, DataType::kInt32}) {
    GraphEngine engine(ScaledWhereAnyIsAbove(128));
    ModelSpec spec = GraphSpec(-1);
    spec.inputs[0].type = type;
    const auto tried = TryGraph(engine, spec);
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->spec.max_batch, 0);
    EXPECT_THAT(Said(*tried), HasSubstr("answers depend on what else is in the batch: up to"));
    GraphEngine again(ScaledWhereAnyIsAbove(128));
    spec.max_batch = 8;
    const auto declared = TryGraph(again, spec);
    ASSERT_TRUE(declared);
    EXPECT_THAT(Said(*declared), HasSubstr("answers depend on what else is in the batch: up to"));
  }
}

// As an embedding of ten words.
TEST(ModelTrial, LargeNumbersThatDoNotRunAreNoReproach) {
  GraphEngine engine([](const Table& rows) {
    for (const auto& row : rows) {
      for (const float value : row) {
        if (value > 9) return std::optional<Table>();
      }
    }
    return std::optional(rows);
  });
  ModelSpec spec = GraphSpec(-1);
  spec.inputs[0].type = DataType::kInt32;
  const auto tried = TryGraph(engine, spec);
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 4);
}

}  // namespace
}  // namespace tactus
