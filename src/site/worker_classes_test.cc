#include "site/worker_classes.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tactus {
namespace {

// A batch of one takes `ms`, one of two half as long again.
WorkerIntroduction Worker(std::vector<std::pair<std::string, double>> models) {
  WorkerIntroduction worker;
  for (const auto& [name, ms] : models) {
    WorkerModel model;
    model.model.name = name;
    model.rows = {.exits = 1, .max_batch = 2, .latency = {FromMillis(ms), FromMillis(1.5 * ms)}};
    worker.models.push_back(std::move(model));
  }
  return worker;
}

TEST(WorkerClassesTest, AlikeWorkersAreOneClassAndOthersTheFirstFreeOne) {
  const WorkerIntroduction first = Worker({{"a", 10}, {"b", 20}});
  const WorkerIntroduction slow = Worker({{"a", 20}, {"b", 40}});
  const std::vector<ClassedWorker> others = {{LaneClass{0}, &first}, {LaneClass{2}, &slow}};
  EXPECT_EQ(ClassFor(Worker({{"a", 11}, {"b", 19}}), others), LaneClass{0});
  EXPECT_EQ(ClassFor(Worker({{"b", 39}}), others), LaneClass{2});
  EXPECT_EQ(ClassFor(Worker({{"a", 11}, {"b", 40}}), others), LaneClass{1});  // half of each
  EXPECT_EQ(ClassFor(Worker({{"c", 10}}), others), LaneClass{1});             // nothing to compare
  EXPECT_EQ(ClassFor(Worker({{"a", 14}}), {}), LaneClass{0});
}

// Else a class could grow by small steps until its ends are unlike.
TEST(WorkerClassesTest, AWorkerIsAlikeAllOfItsClass) {
  const WorkerIntroduction quick = Worker({{"a", 10}});
  const WorkerIntroduction slower = Worker({{"a", 11.4}});
  const std::vector<ClassedWorker> others = {{LaneClass{0}, &quick}, {LaneClass{0}, &slower}};
  EXPECT_EQ(ClassFor(Worker({{"a", 10.5}}), others), LaneClass{0});
  EXPECT_EQ(ClassFor(Worker({{"a", 12.5}}), others), LaneClass{1});
}

}  // namespace
}  // namespace tactus
