// How a batch is tried: without these, rows would be run together that depend on others far away in
// the batch, on equal ones, or on others behind noise.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/temporary_folder_test.h"
#include "profiling/graph_engine_for_test.h"

namespace tactus {
namespace {

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

constexpr const char* kDepends = "answers depend on what else is in the batch";

ModelSpec AssumedSpec(int max_batch) {
  ModelSpec spec = GraphSpec(max_batch);
  spec.batch_origin = BatchOrigin::kAssumed;
  return spec;
}

// Each row less `weight` of the one that stands `distance` places before it.
Graph LessTheOneBefore(std::size_t distance, float weight) {
  return [=](const Table& rows) {
    Table out = rows;
    for (std::size_t r = distance; r < rows.size(); ++r) {
      for (std::size_t i = 0; i < out[r].size(); ++i) out[r][i] -= weight * rows[r - distance][i];
    }
    return std::optional(out);
  };
}

TEST(BatchTrial, ADependenceOnARowAtAnyDistanceShows) {
  for (std::size_t distance = 1; distance < 16; ++distance) {
    for (const float weight : {1.0f, 1e-4f}) {
      GraphEngine engine(LessTheOneBefore(distance, weight));
      const auto tried = TryGraph(engine, GraphSpec(16));
      ASSERT_TRUE(tried);
      EXPECT_EQ(tried->spec.max_batch, 16);
      // What is as far away as it can be has one pair of places only: a little of it may be missed.
      if (distance == 15 && weight < 1) continue;
      EXPECT_THAT(Said(*tried), HasSubstr(kDepends)) << distance << " " << weight;
    }
    GraphEngine again(LessTheOneBefore(distance, 1));
    const auto assumed = TryGraph(again, AssumedSpec(16));
    ASSERT_TRUE(assumed);
    EXPECT_EQ(assumed->spec.max_batch, 0) << distance;
  }
}

// Also on those behind it.
TEST(BatchTrial, ADependenceOnALaterRowShows) {
  for (std::size_t distance = 1; distance < 16; ++distance) {
    GraphEngine engine([&](const Table& rows) {
      Table out = rows;
      for (std::size_t r = 0; r + distance < rows.size(); ++r) out[r] = rows[r + distance];
      return std::optional(out);
    });
    const auto tried = TryGraph(engine, AssumedSpec(16));
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->spec.max_batch, 0) << distance;
  }
}

TEST(BatchTrial, TheWholeBatchIsTried) {
  for (const int most : {2, 3, 4, 5, 8, 16, 64}) {
    std::size_t largest = 0;
    GraphEngine engine([&](const Table& rows) {
      largest = std::max(largest, rows.size());
      return std::optional(rows);
    });
    const auto tried = TryGraph(engine, GraphSpec(most));
    ASSERT_TRUE(tried);
    EXPECT_EQ(largest, static_cast<std::size_t>(most));
    EXPECT_EQ(Said(*tried) + tried->rows, "");
    EXPECT_EQ(tried->spec.max_batch, most);
  }
}

// Rows that are grouped where their number allows it.
TEST(BatchTrial, ADependenceThatSomeNumbersOfRowsAloneShow) {
  for (const std::size_t divisor : {3, 5, 6, 7}) {
    const int most = divisor == 3 ? 4 : 64;
    const Graph groups = [divisor](const Table& rows) {
      Table out = rows;
      if (rows.size() % divisor != 0) return std::optional(out);
      for (std::size_t r = 1; r < rows.size(); ++r) out[r][0] -= rows[r - 1][0];
      return std::optional(out);
    };
    GraphEngine engine(groups);
    const auto declared = TryGraph(engine, GraphSpec(most));
    ASSERT_TRUE(declared);
    EXPECT_THAT(Said(*declared), HasSubstr(kDepends)) << divisor;
    GraphEngine again(groups);
    const auto assumed = TryGraph(again, AssumedSpec(most));
    ASSERT_TRUE(assumed);
    EXPECT_EQ(assumed->spec.max_batch, 0) << divisor;
  }
}

TEST(BatchTrial, ABatchThatRunsWithFewRowsOnlyIsDoubted) {
  const Graph few = [](const Table& rows) {
    return rows.size() > 10 ? std::nullopt : std::optional(rows);
  };
  GraphEngine engine(few);
  const auto tried = TryGraph(engine, GraphSpec(16));
  ASSERT_TRUE(tried);
  EXPECT_THAT(Said(*tried), HasSubstr("not all batches run"));
  GraphEngine again(few);
  EXPECT_THAT(Said(*TryGraph(again, GraphSpec(8))), Not(HasSubstr("not all batches run")));
}

// Rows are mixed for large numbers of one sign alone.
TEST(BatchTrial, WaysThatAGraphTakesFarFromZeroAreTried) {
  for (const float sign : {1.0f, -1.0f}) {
    GraphEngine engine(Each([=](float x, float mean) { return sign * x > 40 ? mean : x; }));
    const auto tried = TryGraph(engine, GraphSpec(-1));
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->spec.max_batch, 0) << sign;
  }
}

// Four rows are what nobody declares, and they show as much as more would.
TEST(BatchTrial, ASmallDependenceOnTheRowsBeforeShows) {
  for (std::size_t distance = 1; distance < 4; ++distance) {
    const Graph before = [=](const Table& rows) {
      Table out = rows;
      for (std::size_t r = distance; r < rows.size(); ++r) {
        for (std::size_t i = 0; i < out[r].size(); ++i) out[r][i] += 1e-4F * rows[r - distance][i];
      }
      return std::optional(out);
    };
    GraphEngine engine(before);
    const auto assumed = TryGraph(engine, GraphSpec(-1));
    ASSERT_TRUE(assumed);
    EXPECT_EQ(assumed->spec.max_batch, 0) << distance;
    GraphEngine again(before);
    const auto declared = TryGraph(again, GraphSpec(4));
    ASSERT_TRUE(declared);
    EXPECT_THAT(Said(*declared), HasSubstr(kDepends)) << distance;
  }
}

TEST(BatchTrial, ASmallDependenceThatThreeRowsAloneShow) {
  for (const std::size_t least : {3, 4}) {
    GraphEngine engine([=](const Table& rows) {
      const float weight = rows.size() < least ? 0 : 1e-3F;
      return Each([=](float x, float mean) { return x - weight * mean; })(rows);
    });
    const auto tried = TryGraph(engine, GraphSpec(-1));
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->spec.max_batch, 0) << least;
  }
}

TEST(BatchTrial, NegativeIntegersAreTried) {
  GraphEngine engine([](const Table& rows) {
    float least = 0;
    for (const auto& row : rows) least = std::min(least, std::ranges::min(row));
    Table out = rows;
    for (auto& row : out) row[0] += least;
    return std::optional(out);
  });
  ModelSpec spec = GraphSpec(-1);
  spec.inputs[0].type = DataType::kInt32;
  const auto tried = TryGraph(engine, spec);
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 0);
}

// As Unique: two callers may send the same.
TEST(BatchTrial, EqualRowsAreTried) {
  GraphEngine engine([](const Table& rows) {
    Table out;
    for (const auto& row : rows) {
      if (std::ranges::find(out, row) == out.end()) out.push_back(row);
    }
    return std::optional(out);
  });
  const auto tried = TryGraph(engine, GraphSpec(-1));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 0);
  EXPECT_THAT(Said(*tried), HasSubstr("it does not run in batches (output 0 has "));
}

// Rows of one customer, camera or class: that number is a float among others.
TEST(BatchTrial, ADependenceOnRowsThatHaveANumberInCommonShows) {
  const Graph mean_of_its_group = [](const Table& rows) {
    Table out = rows;
    for (auto& row : out) {
      float sum = 0;
      float count = 0;
      for (const auto& other : rows) {
        if (other[0] != row[0]) continue;
        sum += other.back();
        ++count;
      }
      row.back() = sum / count;
    }
    return std::optional(out);
  };
  // The best box of its class in a place that overlaps others.
  const Graph suppressed = [](const Table& rows) {
    Table out = rows;
    const auto overlap = [](const auto& a, const auto& b) {
      const float wide = std::min(a[2], b[2]) - std::max(a[0], b[0]);
      const float high = std::min(a[3], b[3]) - std::max(a[1], b[1]);
      return wide > 0 && high > 0;
    };
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (const auto& other : rows) {
        const bool same_class = other[5] == rows[r][5];
        if (same_class && other[4] > rows[r][4] && overlap(other, rows[r])) out[r][4] = 0;
      }
    }
    return std::optional(out);
  };
  for (const Graph& graph : {mean_of_its_group, suppressed}) {
    GraphEngine engine(graph);
    ModelSpec spec = AssumedSpec(4);
    spec.inputs[0].dims = {-1, 6};
    const auto tried = TryGraph(engine, spec);
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->spec.max_batch, 0);
    EXPECT_THAT(Said(*tried), HasSubstr(kDepends));
  }
}

// Near duplicates of pictures: of rows that are made up by chance none is near another.
TEST(BatchTrial, ADependenceOnRowsThatAreNearlyTheSameShows) {
  GraphEngine engine([](const Table& rows) {
    Table out = rows;
    for (auto& row : out) {
      float near = 0;
      for (const auto& other : rows) {
        float apart = 0;
        for (std::size_t i = 0; i < row.size(); ++i) apart += std::abs(row[i] - other[i]);
        if (apart < 0.02f * static_cast<float>(row.size())) ++near;
      }
      row[0] = near;
    }
    return std::optional(out);
  });
  ModelSpec spec = AssumedSpec(4);
  spec.inputs[0].dims = {-1, 3072};
  const auto tried = TryGraph(engine, spec);
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 0);
  EXPECT_THAT(Said(*tried), HasSubstr(kDepends));
}

// Seconds since a day ago, numbers of 16 bits: a graph may take another way for all rows where one
// is so large.
TEST(BatchTrial, ADependenceOnRowsOfAnySizeShows) {
  for (const DataType type : {DataType::kFp32, DataType::kInt32}) {
    GraphEngine engine([](const Table& rows) {
      float most = 0;
      for (const auto& row : rows) most = std::max(most, std::ranges::max(row));
      Table out = rows;
      for (auto& row : out) row[0] = most > 86'400 ? 1 : row[1];
      return std::optional(out);
    });
    ModelSpec spec = GraphSpec(-1);
    spec.inputs[0].type = type;
    const auto tried = TryGraph(engine, spec);
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->spec.max_batch, 0) << Name(type);
    EXPECT_THAT(Said(*tried), HasSubstr(kDepends));
  }
}

ModelSpec SpecWithOptional(int max_batch) {
  ModelSpec spec = AssumedSpec(max_batch);
  spec.inputs.push_back({"bias", DataType::kFp32, {-1, 8}});
  spec.inputs.back().optional = true;
  return spec;
}

// Rows that leave it out do not depend on each other.
TEST(BatchTrial, OptionalInputsAreTriedToo) {
  GraphEngine engine([](const Table& rows) {
    Table out = rows;
    for (std::size_t r = 0; r < rows.size() && rows[0].size() > 8; ++r) out[r][0] += rows[0][8];
    return std::optional(out);
  });
  const auto tried = TryGraph(engine, SpecWithOptional(4));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 0);
  EXPECT_THAT(Said(*tried), HasSubstr("with its optional input 'bias': answers depend"));

  ModelSpec declared = SpecWithOptional(4);
  declared.batch_origin = BatchOrigin::kDeclared;
  const auto warned = TryGraph(engine, declared);
  ASSERT_TRUE(warned);
  EXPECT_EQ(warned->spec.max_batch, 4);
  EXPECT_THAT(Said(*warned), HasSubstr("with its optional input 'bias': answers depend"));

  GraphEngine independent(Each([](float x, float) { return 2 * x; }));
  const auto kept = TryGraph(independent, SpecWithOptional(4));
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->spec.max_batch, 4);

  GraphEngine refuses(
      [](const Table& rows) { return rows[0].size() > 8 ? std::nullopt : std::optional(rows); });
  const auto unknown = TryGraph(refuses, SpecWithOptional(4));
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->spec.max_batch, 0);
  EXPECT_THAT(Said(*unknown), HasSubstr("could not be tried (with its optional input 'bias': "));
}

// A graph may iterate until its numbers converge: nobody is to wait for those that never do.
TEST(BatchTrial, ARunThatDoesNotEndIsTheLast) {
  for (const int max_batch : {-1, 0, 4}) {
    GraphEngine engine(
        [](const Table& rows) { return rows[0][0] < 0 ? std::nullopt : std::optional(rows); });
    engine.endless = true;
    ModelSpec spec = GraphSpec(max_batch);
    if (max_batch == 4) spec.inputs[0].dims = {-1, 8};
    const auto tried = TryGraph(engine, spec);
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->spec.max_batch, std::max(max_batch, 0));
    EXPECT_THAT(Said(*tried), HasSubstr("it was ended"));
    EXPECT_LE(engine.runs, 10);
    EXPECT_FALSE(tried->untried) << "it is not tried again";
  }
}

TEST(BatchTrial, AnAssumedBatchOfAConfigurationIsGivenUpWhereItIsNone) {
  for (const float weight : {0.0f, 1.0f}) {
    GraphEngine engine(Each([=](float x, float mean) { return x - weight * mean; }));
    const auto tried = TryGraph(engine, AssumedSpec(8));
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->spec.max_batch, weight > 0 ? 0 : 8);
    EXPECT_EQ(tried->spec.assumed_batch, 8);
    EXPECT_EQ(tried->spec.batch_origin, BatchOrigin::kAssumed);
  }
  GraphEngine misshapen([](const Table& rows) {
    return std::optional(Table(30 * rows.size(), std::vector<float>{1}));
  });
  const auto tried = TryGraph(misshapen, AssumedSpec(8));
  ASSERT_TRUE(tried) << tried.error().message;
  EXPECT_EQ(tried->spec.max_batch, 0);
}

// Adds noise to what `change` makes of each number and of the whole batch's mean; `scale` of the
// noise, by that mean.
class Noisy {
 public:
  explicit Noisy(std::function<float(float)> scale, float weight = 0)
      : scale_(std::move(scale)), weight_(weight) {}

  std::optional<Table> operator()(const Table& rows) {
    return Each([this](float x, float mean) {
      return x - weight_ * mean + scale_(mean) * static_cast<float>(rng_.Normal());
    })(rows);
  }

 private:
  Rng rng_ = Rng::Stream(7, "noise");
  std::function<float(float)> scale_;
  float weight_;
};

float Even(float) { return 1; }

TEST(BatchTrial, NoiseCostsNoBatchAndIsSaid) {
  for (const float scale : {1.0f, 1e-4f, 1e-2f}) {
    const Noisy noisy([scale](float) { return scale; });
    GraphEngine engine(noisy);
    const auto tried = TryGraph(engine, GraphSpec(-1));
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->spec.max_batch, 4) << scale << Said(*tried);
    EXPECT_THAT(Said(*tried), HasSubstr("'y', which differs each time for the same input"));
    GraphEngine again(noisy);
    const auto declared = TryGraph(again, GraphSpec(16));
    ASSERT_TRUE(declared);
    EXPECT_EQ(declared->spec.max_batch, 16);
    EXPECT_THAT(Said(*declared), HasSubstr("'y' differs each time for the same input"));
    EXPECT_THAT(Said(*declared), Not(HasSubstr(kDepends)));
  }
}

TEST(BatchTrial, NoiseHidesNoDependence) {
  // On the mean of the numbers, or on their spread.
  for (const Noisy& noisy :
       {Noisy(Even, 1), Noisy(Even, 0.1f), Noisy([](float mean) { return 1 + std::abs(mean); })}) {
    GraphEngine engine(noisy);
    const auto tried = TryGraph(engine, GraphSpec(-1));
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->spec.max_batch, 0) << Said(*tried);
    EXPECT_THAT(Said(*tried), HasSubstr(kDepends));
    EXPECT_THAT(Said(*tried), Not(HasSubstr("unlike rows gave together")));
    GraphEngine again(noisy);
    const auto declared = TryGraph(again, GraphSpec(8));
    ASSERT_TRUE(declared);
    EXPECT_EQ(declared->spec.max_batch, 8);
    EXPECT_THAT(Said(*declared), HasSubstr(kDepends));
  }
}

// As dropout that is left on.
TEST(BatchTrial, WhatIsSetToZeroByChanceCostsNoBatch) {
  Rng rng = Rng::Stream(3, "dropout");
  GraphEngine engine(Each([&rng](float x, float) { return rng.Uniform() < 0.2 ? 0 : x; }));
  const auto tried = TryGraph(engine, GraphSpec(-1));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 4) << Said(*tried);
}

// As dropout whose generator is seeded anew for each run: each place has a mask of its own.
TEST(BatchTrial, NoiseThatIsAnotherInEachPlaceCostsNoBatch) {
  Rng runs = Rng::Stream(6, "runs");
  GraphEngine engine([&runs](const Table& rows) {
    Rng places = Rng::Stream(11, "places");
    Table out = rows;
    for (auto& row : out) {
      for (float& value : row) {
        const double place = places.Uniform();
        if (place < 0.4 || (place < 0.8 && runs.Uniform() < 0.5)) value = 0;
      }
    }
    return std::optional(out);
  });
  const auto tried = TryGraph(engine, GraphSpec(-1));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 4) << Said(*tried);
}

TEST(BatchTrial, LabelsOfChanceCostNoBatchAndHideNoDependence) {
  for (const float weight : {0.0f, 1.0f}) {
    Rng rng = Rng::Stream(3, "labels");
    GraphEngine engine(Each([&rng, weight](float x, float mean) {
      return std::floor(x + weight * mean + static_cast<float>(rng.Normal()));
    }));
    ModelSpec spec = GraphSpec(-1);
    spec.outputs[0].type = DataType::kInt32;
    const auto tried = TryGraph(engine, spec);
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->spec.max_batch, weight > 0 ? 0 : 4) << Said(*tried);
  }
}

TEST(BatchTrial, AnOutputOfChanceDoesNotExcuseTheOthers) {
  for (const float depends : {1.0f, 0.0f}) {
    GraphEngine engine(Noisy(Even),
                       Each([depends](float x, float mean) { return x - depends * mean; }));
    const auto tried = TryGraph(engine, TwoOutputs(-1));
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->spec.max_batch, depends > 0 ? 0 : 4) << Said(*tried);
  }
}

// An alarm that no made-up row sets off may look at all rows.
TEST(BatchTrial, AnOutputThatNeverVariedIsNamed) {
  GraphEngine engine(Each([](float x, float) { return std::tanh(x); }),
                     Each([](float x, float) { return std::max(x - 1e9f, 0.0f); }));
  const auto tried = TryGraph(engine, TwoOutputs(-1));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->spec.max_batch, 4);
  EXPECT_THAT(Said(*tried), HasSubstr("(of 'z', which was the same for all rows"));
  GraphEngine both(Each([](float x, float) { return x; }), Each([](float x, float) { return -x; }));
  EXPECT_THAT(Said(*TryGraph(both, TwoOutputs(-1))), Not(HasSubstr("nothing is known")));
}

TEST(BatchTrial, SaysWhatARowGave) {
  for (const int most : {-1, 0, 8}) {
    GraphEngine engine(Each([](float x, float) { return x; }));
    const auto tried = TryGraph(engine, GraphSpec(most));
    ASSERT_TRUE(tried);
    EXPECT_EQ(tried->gave, std::vector<Shape>{(Shape{1, 8})});
    EXPECT_FALSE(tried->undecided);
  }
  GraphEngine none([](const Table&) { return std::optional<Table>(); });
  const auto tried = TryGraph(none, GraphSpec(-1));
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->gave, std::vector<Shape>());
  EXPECT_TRUE(tried->undecided);
}

// Whether the batch of a graph holds whose file names these operators.
bool Holds(const std::string& operators, const Graph& graph, int max_batch = -1) {
  const TemporaryFolder folder;
  ModelSpec spec = GraphSpec(max_batch);
  spec.batch_origin = BatchOrigin::kAssumed;
  spec.exits[0].graph = folder / "model.onnx";
  std::ofstream(spec.exits[0].graph) << operators;
  GraphEngine engine(graph);
  const auto tried = TryGraph(engine, spec);
  return tried && tried->spec.max_batch > 0;
}

Graph WithWhole(std::function<float(float, float, float)> change) {
  return [change](const Table& rows) {
    float least = rows[0][0];
    float most = rows[0][0];
    for (const auto& row : rows) {
      least = std::min(least, *std::ranges::min_element(row));
      most = std::max(most, *std::ranges::max_element(row));
    }
    Table out = rows;
    for (auto& row : out) {
      for (float& value : row) value = change(value, least, most);
    }
    return std::optional(out);
  };
}

// Each row is drawn to the others, the more the nearer they are.
Graph MeanShift(float sharpness) {
  return [sharpness](const Table& rows) {
    Table out = rows;
    for (auto& row : out) {
      const std::vector<float> self = row;
      float sum = 0;
      std::ranges::fill(row, 0.0f);
      for (const auto& other : rows) {
        float distance = 0;
        for (std::size_t i = 0; i < row.size(); ++i) {
          distance += (self[i] - other[i]) * (self[i] - other[i]);
        }
        const float weight = std::exp(-sharpness * distance);
        sum += weight;
        for (std::size_t i = 0; i < row.size(); ++i) row[i] += weight * other[i];
      }
      for (float& value : row) value /= sum;
    }
    return std::optional(out);
  };
}

TEST(BatchTrial, AGraphThatDecidesNothingAndDependsOnOtherRowsIsFound) {
  const char* const smooth = "Conv Relu Gemm";
  const auto relu = [](float x) { return std::max(x, 0.0f); };
  const std::pair<const char*, Graph> graphs[] = {
      {"mean", Each([](float x, float mean) { return x - 1e-4f * mean; })},
      {"softmax", Each([](float x, float mean) { return std::exp(x - mean); })},
      {"roots of the mean", Each([](float x, float mean) { return std::sqrt(x + mean); })},
      {"least", WithWhole([](float x, float least, float) { return x - least; })},
      {"rows without negative numbers alone",
       WithWhole([&](float x, float least, float) { return x + 1e-2f * relu(least); })},
      {"rows without positive numbers alone",
       WithWhole([&](float x, float, float most) { return x + 1e-2f * relu(-most); })},
      {"far below", WithWhole([&](float x, float least, float) { return x + relu(-least - 20); })},
      {"far above", WithWhole([&](float x, float, float most) { return x + relu(most - 20); })},
      {"the one before", LessTheOneBefore(1, 1e-4f)},
      {"the third before", LessTheOneBefore(3, 1e-4f)},
      // Of rows that lie near each other, as boxes and embeddings do: by arithmetic alone.
      {"a step to the mean of near rows", MeanShift(5)},
      {"rows that nearly equal rows suppress", MeanShift(300)},
  };
  for (const auto& [name, graph] : graphs) EXPECT_FALSE(Holds(smooth, graph)) << name;
  for (std::size_t distance = 1; distance < 16; ++distance) {
    EXPECT_FALSE(Holds(smooth, LessTheOneBefore(distance, 1), 16)) << distance;
  }
}

// Logarithms and roots have numbers where no input is negative: those rows are drawn then.
TEST(BatchTrial, AGraphWithoutNumbersIsTriedWithOtherRows) {
  const auto log_of = [](float weight) {
    return Each([weight](float x, float mean) { return std::log(x - weight * mean * mean); });
  };
  EXPECT_TRUE(Holds("Log Sqrt", log_of(0)));
  EXPECT_FALSE(Holds("Log Sqrt", log_of(0.01f)));
}

}  // namespace
}  // namespace tactus
