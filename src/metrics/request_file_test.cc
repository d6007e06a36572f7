// Whoever wants figures that the report lacks takes them from this file: a row that is missing, or
// counted where the report does not count it, makes them others.
#include "metrics/request_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "base/whole_file.h"

namespace tactus {
namespace {

TEST(RequestFile, HasARowForEveryRequestAndSaysWhichCount) {
  const std::vector<Model> models = {{.name = "a", .exits = {{"1", 0.5}, {"2", 0.9}}},
                                     {.name = "b", .priority = 3, .exits = {{"2", 0.7}}}};
  const std::vector<RequestRecord> records = {{.arrival = kStart + Nanos(5),
                                               .started = kStart + Nanos(7),
                                               .ended = kStart + Nanos(20),
                                               .exit = 1,
                                               .batch = 4},
                                              {.arrival = kStart + Nanos(5),
                                               .started = kStart + Nanos(5),
                                               .ended = kStart + Nanos(9),
                                               .model = 1,
                                               .outcome = Outcome::kExpired},
                                              {.arrival = kStart + Nanos(30),
                                               .started = kStart + Nanos(31),
                                               .ended = kStart + Nanos(32),
                                               .batch = 1,
                                               .outcome = Outcome::kLate}};
  const TemporaryFolder folder;
  const std::string path = folder / "requests.csv";
  // Of two that arrive together one is skipped; the last is after the end.
  const Counting counting(records, kStart, kStart + Nanos(30), 1);
  ASSERT_TRUE(WriteRequests(records, models, counting, path));
  EXPECT_EQ(*ReadWhole(path, "file"),
            "model,priority,outcome,exit,batch,arrival_ns,started_ns,ended_ns,counted\n"
            "a,1,met,2,4,5,7,20,0\n"
            "b,3,expired,2,0,5,5,9,1\n"
            "a,1,late,1,1,30,31,32,0\n");
  EXPECT_THAT(WriteRequests(records, models, counting, folder / "no/requests.csv").error().message,
              ::testing::HasSubstr("no/requests.csv: cannot write the requests"));
}

}  // namespace
}  // namespace tactus
