// When an ensemble and its steps are ready, and what an unload takes with it.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ensemble/ensemble_service.h"
#include "ensemble/scripted_steps_test.h"

namespace tactus {
namespace {

using testing::HasSubstr;

TEST(EnsembleReadiness, IsReadyWithoutAStepWhereReadinessIsNotStrict) {
  EnsembleOptions options;
  options.is_explicit = true;
  options.strict_readiness = false;
  EnsembleBench bench(std::move(options));
  DeclareChain(bench);
  ASSERT_TRUE(bench.service->Unload("second"));
  EXPECT_EQ(bench.service->Find("chain", -1).error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(bench.service->Ready());
}

// Where steps run on the workers of a site, a model may be known that none of them serves.
TEST(EnsembleReadiness, IsNotReadyWhileNobodyServesAStepThatMayBeCalled) {
  EnsembleBench bench;
  DeclareChain(bench);
  EXPECT_TRUE(bench.service->ModelReady("chain", -1));
  EXPECT_TRUE(bench.service->ModelReady("second", -1));
  bench.steps.unserved = "second";
  EXPECT_THAT(bench.service->ModelReady("chain", -1).error().message,
              HasSubstr("step 'second': no worker serves it"));
  EXPECT_FALSE(bench.service->ModelReady("second", -1));
  EXPECT_FALSE(bench.service->Ready());
  EXPECT_TRUE(bench.service->ModelReady("first", -1));
  EXPECT_TRUE(bench.service->Find("chain", -1)) << "its calls wait for a worker";
  EXPECT_EQ(bench.service->ModelReady("nobody", -1).error().code, ErrorCode::kNotFound);
  const auto index = bench.service->Index();
  const auto chain = std::ranges::find(index, "chain", &ModelState::name);
  ASSERT_NE(chain, index.end());
  EXPECT_EQ(chain->state, "UNAVAILABLE");
  EXPECT_EQ(chain->reason, "step 'second': no worker serves it");
}

TEST(EnsembleReadiness, IsReadyWhileItsStepsAre) {
  EnsembleOptions options;
  options.is_explicit = true;
  EnsembleBench bench(std::move(options));
  DeclareChain(bench);
  const auto state = [&] {
    for (const ModelState& each : bench.service->Index()) {
      if (each.name == "chain") return each;
    }
    return ModelState{};
  };
  EXPECT_EQ(state().state, "READY");
  EXPECT_TRUE(bench.service->Ready());
  bench.steps.on_disk["second"] = *bench.steps.models["second"];
  ASSERT_TRUE(bench.service->Unload("second"));
  EXPECT_EQ(state().state, "UNAVAILABLE");
  EXPECT_THAT(state().reason, HasSubstr("step 'second': the repository has no model"));
  EXPECT_FALSE(bench.service->Ready());
  EXPECT_EQ(bench.service->Find("chain", -1).error().code, ErrorCode::kUnavailable);
  // Loading the ensemble loads what it needs.
  ASSERT_TRUE(bench.service->Load("chain", ""));
  EXPECT_EQ(state().state, "READY");
  ASSERT_TRUE(bench.service->Unload("chain"));
  EXPECT_EQ(state().reason, "unloaded");
  EXPECT_TRUE(bench.service->Find("second", -1));
  bench.steps.models.erase("first");
  EXPECT_THAT(bench.service->Load("chain", "").error().message,
              HasSubstr("ensemble 'chain' needs model 'first'"));
}

TEST(EnsembleReadiness, UnloadsTheModelsOfItsStepsIfAsked) {
  EnsembleBench bench;
  DeclareChain(bench);
  bench.steps.Add(FloatModel("bystander", 8, {Row4("in")}, {Row4("out")}));
  ASSERT_TRUE(bench.service->UnloadWithSteps("chain"));
  EXPECT_FALSE(bench.service->Find("chain", -1));
  EXPECT_FALSE(bench.service->Find("first", -1));
  EXPECT_FALSE(bench.service->Find("second", -1));
  EXPECT_TRUE(bench.service->Find("bystander", -1));
  ASSERT_TRUE(bench.service->UnloadWithSteps("bystander")) << "of what is no ensemble, itself";
  EXPECT_FALSE(bench.service->Find("bystander", -1));
}

}  // namespace
}  // namespace tactus
