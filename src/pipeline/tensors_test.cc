// Which tensor goes where, and what does not fit. A mistake that passes here is met by a client.
#include "pipeline/tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/build.h"

namespace tactus {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Fitting {
  EnsembleDeclaration ensemble;
  std::vector<std::shared_ptr<const ModelSpec>> models;

  void Add(StageDeclaration step, int max_batch, Shape in, Shape out,
           DataType type = DataType::kFp32) {
    ModelSpec model;
    model.name = step.model = step.name;
    model.max_batch = max_batch;
    model.inputs = {{"in", type, std::move(in)}};
    model.outputs = {{"out", type, std::move(out)}};
    step.place = "config.pbtxt:7";
    ensemble.pipeline.stages.push_back(std::move(step));
    models.push_back(std::make_shared<const ModelSpec>(std::move(model)));
  }
  Expected<PipelineTensors> Bind() {
    EnsembleDeclaration linked = ensemble;
    linked.model.name = "e";
    if (Status status = LinkStages(linked); !status) return std::unexpected(status.error());
    const auto graph = PipelineGraph::Make(linked.pipeline.stages);
    if (!graph) return std::unexpected(graph.error());
    const auto levels = PipelineLevels::Make(*graph, linked.pipeline.stages);
    if (!levels) return std::unexpected(levels.error());
    return BindTensors(linked, *graph, *levels, models);
  }
  std::string Error() {
    const auto bound = Bind();
    return bound ? "no error" : bound.error().message;
  }
};

// find (rows) -> read, once for each -> join, which gathers; y is join's, texts are read's.
Fitting Rows() {
  Fitting fit;
  fit.ensemble.model.inputs = {{"x", DataType::kFp32, {4}}};
  fit.ensemble.model.outputs = {{"y", DataType::kFp32, {1}},
                                {"texts", DataType::kFp32, {-1, 3}},
                                {"boxes", DataType::kFp32, {-1, 2}}};
  fit.Add(
      {.name = "find", .demultiply = true, .inputs = {{"in", "x"}}, .outputs = {{"out", "boxes"}}},
      0, {4}, {-1, 2});
  fit.Add({.name = "read", .inputs = {{"in", "boxes"}}, .outputs = {{"out", "texts"}}}, 8, {-1, 2},
          {-1, 3});
  fit.Add(
      {.name = "join", .gather = "find", .inputs = {{"in", "texts"}}, .outputs = {{"out", "y"}}}, 0,
      {-1, 3}, {1});
  return fit;
}

TEST(Tensors, GoWholeByRowAndGathered) {
  Fitting fit = Rows();
  const auto bound = fit.Bind();
  ASSERT_TRUE(bound) << fit.Error();
  EXPECT_FALSE(bound->stages[0].inputs[0].from.valid());
  EXPECT_EQ(bound->stages[1].inputs[0].from, StageId{0});
  EXPECT_EQ(bound->stages[1].inputs[0].passing, TensorPassing::kRow);
  EXPECT_EQ(bound->stages[2].inputs[0].from, StageId{1});
  EXPECT_EQ(bound->stages[2].inputs[0].passing, TensorPassing::kRows);
  EXPECT_EQ(bound->outputs[0].passing, TensorPassing::kWhole);
  EXPECT_EQ(bound->outputs[1].passing, TensorPassing::kRows);
  EXPECT_EQ(bound->outputs[2].passing, TensorPassing::kWhole);
}

TEST(Tensors, AnOptionalInputNeedsNoTensor) {
  Fitting fit = Rows();
  ModelSpec read = *fit.models[1];
  read.inputs.insert(read.inputs.begin(), {"scale", DataType::kFp32, {-1, 1}, {}, true});
  fit.models[1] = std::make_shared<const ModelSpec>(read);
  const auto bound = fit.Bind();
  ASSERT_TRUE(bound) << fit.Error();
  EXPECT_EQ(bound->stages[1].inputs[0].index, TensorEdge::kNone);
  EXPECT_EQ(bound->stages[1].inputs[1].from, StageId{0});
  read.inputs[0].optional = false;
  fit.models[1] = std::make_shared<const ModelSpec>(read);
  EXPECT_THAT(fit.Error(), HasSubstr("nothing is passed to input 'scale' of model 'read'"));
}

TEST(Tensors, AnInputOfAnyShapeFitsWhateverComes) {
  Fitting fit = Rows();
  ModelSpec read = *fit.models[1];
  read.inputs[0].dims = {-1};
  fit.models[1] = std::make_shared<const ModelSpec>(read);
  EXPECT_THAT(fit.Error(), HasSubstr("'boxes' comes as [1,2], which is no [-1]"));
  EXPECT_THAT(fit.Error(), Not(HasSubstr("max_batch_size"))) << "it has a batch";
  read.inputs[0].any_shape = true;
  fit.models[1] = std::make_shared<const ModelSpec>(read);
  EXPECT_TRUE(fit.Bind()) << fit.Error();
}

TEST(Tensors, WhatDoesNotFitNamesThePlaceAndBothSides) {
  Fitting shape = Rows();
  shape.ensemble.model.outputs[1].dims = {-1, 5};
  EXPECT_THAT(shape.Error(), HasSubstr("config.pbtxt:7: step 'read': makes 'texts' as [-1,3], but "
                                       "the ensemble's output is [-1,5]"));
  Fitting row = Rows();
  row.models[1] =
      std::make_shared<const ModelSpec>(ModelSpec{.name = "read",
                                                  .max_batch = 8,
                                                  .inputs = {{"in", DataType::kFp32, {-1, 7}}},
                                                  .outputs = {{"out", DataType::kFp32, {-1, 3}}}});
  EXPECT_THAT(row.Error(), HasSubstr("step 'read': 'boxes' comes as [1,2], which is no [-1,7]"));
  Fitting type = Rows();
  type.ensemble.model.inputs[0].type = DataType::kInt64;
  EXPECT_THAT(type.Error(), HasSubstr("'x' is INT64, but input 'in' of model 'find' takes FP32"));
  Fitting name = Rows();
  name.ensemble.pipeline.stages[1].inputs[0].tensor = "into";
  EXPECT_THAT(name.Error(), HasSubstr("model 'read' has no input 'into'; it has 'in'"));
  Fitting scalar = Rows();
  scalar.models[0] =
      std::make_shared<const ModelSpec>(ModelSpec{.name = "find",
                                                  .inputs = {{"in", DataType::kFp32, {4}}},
                                                  .outputs = {{"out", DataType::kFp32, {}}}});
  EXPECT_THAT(scalar.Error(), HasSubstr("'boxes' has no rows that a step could run for"));
  Fitting batch = Rows();
  batch.ensemble.model.max_batch = 16;
  EXPECT_THAT(batch.Error(), HasSubstr("step 'find': model 'find' has no batch, but the "
                                       "ensemble's max_batch_size is 16; state 0 there"));
}

ModelSpec Read(std::vector<std::int64_t> in, std::vector<std::int64_t> out) {
  return {.name = "read",
          .max_batch = 0,
          .inputs = {{"in", DataType::kFp32, std::move(in)}},
          .outputs = {{"out", DataType::kFp32, std::move(out)}}};
}

TEST(Tensors, AStepWhoseBatchWasDisprovedStillTakesRows) {
  Fitting fit = Rows();
  ModelSpec read = Read({-1, 2}, {-1, 3});
  fit.models[1] = std::make_shared<const ModelSpec>(read);
  EXPECT_THAT(fit.Error(), AllOf(HasSubstr("'boxes' comes as [2], which is no [-1,2]"),
                                 HasSubstr("state max_batch_size in its config.pbtxt")));
  read.batch_origin = BatchOrigin::kDisproved;
  fit.models[1] = std::make_shared<const ModelSpec>(read);
  EXPECT_TRUE(fit.Bind()) << fit.Error();
}

TEST(Tensors, OnlyOfARowItIsSaidThatItMayLackABatch) {
  Fitting fit;
  fit.ensemble.model.inputs = {{"x", DataType::kFp32, {2}}};
  fit.ensemble.model.outputs = {{"y", DataType::kFp32, {3}}};
  fit.Add({.name = "read", .inputs = {{"in", "x"}}, .outputs = {{"out", "y"}}}, 0, {-1, 2},
          {-1, 3});
  EXPECT_THAT(fit.Error(), AllOf(HasSubstr("'x' comes as [2], which is no [-1,2]"),
                                 Not(HasSubstr("max_batch_size"))));
}

// Else a reload, or the first call of a graph that could not be tried, changes what a row is.
TEST(Tensors, WhoseRowsAreTakenStatesItsBatch) {
  const auto assumed = [](const Fitting& fit, std::size_t step) {
    auto model = std::make_shared<ModelSpec>(*fit.models[step]);
    model->assumed_batch = -1;
    model->batch_origin = BatchOrigin::kDisproved;  // a call may have ended the batch
    return model;
  };
  for (const std::size_t step : {0, 1}) {
    Fitting fit = Rows();
    fit.models[step] = assumed(fit, step);
    const std::string& name = fit.models[step]->name;
    EXPECT_THAT(fit.Error(), AllOf(HasSubstr("config.pbtxt:7: step '" + name + "'"),
                                   HasSubstr("write max_batch_size into its config.pbtxt")));
  }
  Fitting whole = Rows();
  whole.models[2] = assumed(whole, 2);
  EXPECT_TRUE(whole.Bind()) << "it takes all rows as one tensor: " << whole.Error();
}

TEST(Tensors, RowsGoWholeToAStepWithoutABatchThatTakesAnyNumber) {
  Fitting fit;
  fit.ensemble.model.max_batch = 4;
  fit.ensemble.model.inputs = {{"x", DataType::kFp32, {-1, 2}}};
  fit.ensemble.model.outputs = {{"y", DataType::kFp32, {-1, 3}}};
  fit.Add({.name = "read", .inputs = {{"in", "x"}}, .outputs = {{"out", "y"}}}, 0, {-1, 2},
          {-1, 3});
  EXPECT_TRUE(fit.Bind()) << fit.Error();
  fit.models[0] = std::make_shared<const ModelSpec>(Read({1, 2}, {1, 3}));
  EXPECT_THAT(fit.Error(), HasSubstr("step 'read': model 'read' has no batch"));
}

}  // namespace
}  // namespace tactus
