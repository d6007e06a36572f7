#include "sim/search/workload_grid.h"

#include <set>

#include <gtest/gtest.h>

#include "base/source_path_for_test.h"
#include "policies/registry.h"
#include "sim/sim_testing.h"

namespace tactus {
namespace {

PolicyFactory FactoryOf(const char* text) {
  return [text] { return MakePolicy(text); };
}

ProfileFile Zoo() {
  const auto zoo = LoadProfile(SourcePath("scenarios/profiles/symphony-1080ti.json"));
  EXPECT_TRUE(zoo) << zoo.error().message;
  return *zoo;
}

// A workload that is there twice would be run and counted twice; one that is missing never.
TEST(WorkloadGrid, IsTheProductOfTable1) {
  const auto cells = WorkloadGrid(35);
  std::set<std::string> names;
  int mixed = 0;
  for (const GridCell& cell : cells) {
    names.insert(cell.Name());
    mixed += cell.model == kMixed ? 1 : 0;
  }
  EXPECT_EQ(names.size(), cells.size());
  EXPECT_EQ(mixed, 7 * 6);
  EXPECT_EQ(cells.size() - mixed, 6u * 6 * 7 * 5 * 6);
  EXPECT_TRUE(names.contains("DenseNet121,8,12,30,0.1"));
  EXPECT_TRUE(names.contains("mixed,35,140,0,1"));
}

TEST(WorkloadGrid, MakesTheWorkloadThatACellNames) {
  const auto made = MakeWorkload({"VGG16", 16, 1.5, Millis(40), 0.25}, Zoo(), {});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->models.size(), 16u);
  EXPECT_EQ(made->models[3].profile_as, "VGG16");
  EXPECT_EQ(made->models[3].slo_ms, 40);
  EXPECT_EQ(made->lanes, 24);
  EXPECT_DOUBLE_EQ(made->cv, 2);  // shape 1/4
  EXPECT_GE((made->duration_s - made->warmup_s) * made->rate_rps, 19'999);
  EXPECT_FALSE(MakeWorkload({"no such model", 8, 1, Millis(40), 1}, Zoo(), {}));
}

// Figure 7 in small: deferral pays where batching does and lanes are scarce in time, and costs next
// to nothing where it does not.
TEST(WorkloadGrid, DeferralPaysWhereBatchingDoes) {
  const auto ratio = [](const GridCell& cell) {
    const GridEffort effort{.least_requests = 6000};
    const ProfileFile zoo = Zoo();
    const double guess = 0.9 * MakeWorkload(cell, zoo, effort)->rate_rps;
    const auto deferred = QuickPeak(cell, zoo, FactoryOf("symphony:published"), guess, effort);
    const auto eager =
        QuickPeak(cell, zoo, FactoryOf("symphony:published,when=eager"), guess, effort);
    EXPECT_TRUE(deferred && eager);
    return *deferred / *eager;
  };
  EXPECT_GT(ratio({"DenseNet121", 8, 3, Millis(25), 1}), 1.3);
  const double weak = ratio({"BERT", 8, 3, Millis(50), 1});
  EXPECT_GT(weak, 0.9);
  EXPECT_LT(weak, 1.1);
}

// A search that depended on its guess would make the figure depend on the order of its policies.
TEST(WorkloadGrid, TheGuessMovesThePeakByNoMoreThanThePrecision) {
  const GridCell cell{"ResNet50V2", 8, 2, Millis(40), 0.5};
  const GridEffort effort{.least_requests = 6000};
  const ProfileFile zoo = Zoo();
  const double fluid = MakeWorkload(cell, zoo, effort)->rate_rps;
  const auto low =
      QuickPeak(cell, zoo, FactoryOf("symphony:gather=prefix,lead=0"), 0.3 * fluid, effort);
  const auto high =
      QuickPeak(cell, zoo, FactoryOf("symphony:gather=prefix,lead=0"), 1.6 * fluid, effort);
  ASSERT_TRUE(low && high);
  EXPECT_NEAR(*low / *high, 1, 2 * effort.precision);
}

}  // namespace
}  // namespace tactus
