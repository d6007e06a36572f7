#include "workload/profile_file.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// One model, two exits, batches 1 and 2.
const std::string kSmall = R"({"tactus_profile": 1,
 "machine": {"fingerprint": "f", "cpu": "c", "cores": 2, "os": "o", "engine": "e"},
 "commit": "abc", "created": "2026-01-02T03:04:05Z", "provenance": "measured",
 "launch_overhead_ms": 0.01, "finish_overhead_ms": 0.02, "answer_overhead_ms": 0.03,
 "service_window_ms": 100, "service_trace": [1.25, 0.75],
 "models": [{"name": "m", "max_batch": 2, "slo_ms": 20, "service_ratio": 0.875, "exits": [
  {"name": "early", "accuracy": 0.5, "cells": [
   {"batch": 1, "repetitions": 9, "mean_ms": 1.1, "min_ms": 1, "p50_ms": 1.05, "p95_ms": 1.5,
    "p99_ms": 2, "max_ms": 4, "cv": 0.1},
   {"batch": 2, "mean_ms": 2}]},
  {"name": "final", "accuracy": 0.75, "cells": [
   {"batch": 1, "mean_ms": 3}, {"batch": 2, "mean_ms": 5}]}]}]})";

std::string With(const std::string& from, const std::string& to) {
  std::string text = kSmall;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

class TempFile {
 public:
  explicit TempFile(const std::string& text) { std::ofstream(path_) << text; }
  const std::filesystem::path& path() const { return path_; }

 private:
  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "profile";
};

TEST(ProfileFile, ReadsAllItHolds) {
  const auto profile = ParseProfile(kSmall, "p.json");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->machine, (Machine{"f", "c", 2, "o", "e"}));
  EXPECT_EQ(profile->provenance, "measured");
  EXPECT_EQ(profile->launch_overhead_ms, 0.01);
  const ProfiledModel& model = *profile->Find("m");
  EXPECT_EQ(model.slo_ms, 20);
  ASSERT_EQ(model.exits.size(), 2u);
  EXPECT_EQ(model.exits[0].cells[0].p99_ms, 2);
  EXPECT_EQ(model.exits[1].accuracy, 0.75);
  // A derived cell states one latency, which is then all of its quantiles.
  EXPECT_EQ(model.exits[1].cells[1].p99_ms, 5);
  EXPECT_EQ(model.exits[1].cells[1].repetitions, 0);
  EXPECT_DOUBLE_EQ(model.exits[1].alpha_ms, 2);
  EXPECT_DOUBLE_EQ(model.exits[1].beta_ms, 1);
  EXPECT_NEAR(model.exits[1].fit_error, 0, 1e-12);
  EXPECT_EQ(profile->Find("n"), nullptr);
}

TEST(ProfileFile, IsTheSameAfterSavingAndLoading) {
  const TempFile file("");
  const auto profile = ParseProfile(kSmall, "p.json");
  ASSERT_TRUE(SaveProfile(*profile, file.path()));
  const auto again = LoadProfile(file.path());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->machine, profile->machine);
  EXPECT_EQ(again->created, profile->created);
  EXPECT_EQ(again->finish_overhead_ms, profile->finish_overhead_ms);
  EXPECT_EQ(again->answer_overhead_ms, 0.03);
  EXPECT_EQ(again->service_window_ms, 100);
  EXPECT_THAT(again->service_trace, ElementsAre(1.25, 0.75));
  EXPECT_EQ(again->models[0].service_ratio, 0.875);
  const ProfileCell& cell = again->models[0].exits[0].cells[0];
  EXPECT_EQ(cell.repetitions, 9);
  EXPECT_EQ(cell.mean_ms, 1.1);
  EXPECT_EQ(cell.cv, 0.1);
  EXPECT_EQ(again->models[0].exits[1].cells[1].mean_ms, 5);
}

// The same profile with what its final exit's batches use; the early one's cells say nothing more.
std::string WithUse(const std::string& throughput) {
  std::string text = With("\"slo_ms\": 20,", "\"slo_ms\": 20, \"resources_source\": \"a test\",");
  for (const char* cell :
       {"4, \"cv\": 0.1}", "\"mean_ms\": 2}", "\"mean_ms\": 3}", "\"mean_ms\": 5}"}) {
    const std::size_t at = text.find(cell) + std::string(cell).size() - 1;
    text.insert(at, ", \"transfer_ms\": 0.25, \"throughput\": {" + throughput + "}");
  }
  return text;
}

// Without it a profile of a device could not be told from one of another.
TEST(ProfileFile, KeepsTheDeviceThatItWasMeasuredOn) {
  const TempFile file("");
  auto profile = ParseProfile(kSmall, "p.json").value();
  ASSERT_FALSE(profile.machine.device);
  profile.machine.device = DeviceFacts{.name = "NVIDIA \"H200\"",
                                       .uuid = "GPU-1",
                                       .capability = 90,
                                       .multiprocessors = 132,
                                       .memory_bytes = std::uint64_t{141} << 30,
                                       .driver = 13000,
                                       .power_limit_watts = 700};
  profile.machine.share = 0.25;
  ASSERT_TRUE(SaveProfile(profile, file.path()));
  const auto again = LoadProfile(file.path());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->machine, profile.machine);
}

// Profiles from before have none, and mean the same as ever; latencies are still the whole.
TEST(ProfileFile, KeepsCopiesApartFromKernels) {
  const auto read =
      ParseProfile(With("\"cv\": 0.1}",
                        "\"cv\": 0.1, \"device\": {\"upload_ms\": 0.25, \"kernels_ms\": 0.5, "
                        "\"download_ms\": 0.125}}"),
                   "p.json");
  ASSERT_TRUE(read) << read.error().message;
  const TempFile file("");
  ASSERT_TRUE(SaveProfile(*read, file.path()));
  const auto again = LoadProfile(file.path());
  ASSERT_TRUE(again) << again.error().message;
  const std::vector<ProfileCell>& cells = again->Find("m")->exits[0].cells;
  EXPECT_EQ(cells[0].device, (ProfiledDeviceTimes{0.25, 0.5, 0.125}));
  EXPECT_FALSE(cells[1].device);
  const std::vector<Model> models = {
      {.name = "m", .max_batch = 2, .exits = {{.name = "early"}, {.name = "final"}}}};
  const auto table = MakeTable(*again, models, {.percentile = 0});
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->Latency(ModelId{0}, ExitId{0}, 1, LaneClass{0}), FromMillis(1.1));
}

TEST(ProfileFile, NamesTheMistakeInDeviceTimes) {
  const auto read =
      ParseProfile(With("\"cv\": 0.1}",
                        "\"cv\": 0.1, \"device\": {\"upload_ms\": -1, \"kernels_ms\": 0.5, "
                        "\"download_ms\": 0}}"),
                   "p.json");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("upload_ms"));
}

// Without these a batch's figures could be lost on the way, or be made up where there are none.
TEST(ProfileFile, KeepsWhatBatchesUse) {
  const TempFile file("");
  const auto profile = ParseProfile(
      WithUse(R"("l1": 0.1, "l2": 0.2, "dram": 0.3, "tensor": 0.4, "fma": 1)"), "p.json");
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_TRUE(SaveProfile(*profile, file.path()));
  const auto again = LoadProfile(file.path());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->models[0].resources_source, "a test");
  const Throughput wanted{0.1, 0.2, 0.3, 0.4, 1};
  EXPECT_EQ(again->models[0].exits[1].cells[1].throughput, wanted);
  EXPECT_EQ(again->models[0].exits[1].cells[1].transfer_ms, 0.25);
  const Model model{.name = "m", .max_batch = 2, .exits = {{"final", 0.75}}};
  const auto table = MakeTable(*again, std::span(&model, 1), {});
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_TRUE(table->knows_use(ModelId{0}));
  EXPECT_EQ(table->Use(ModelId{0}, ExitId{0}, 2, LaneClass{0}),
            (ResourceUse{wanted, FromMillis(0.25)}));
  const auto plain = MakeTable(*ParseProfile(kSmall, "p.json"), std::span(&model, 1), {});
  EXPECT_FALSE(plain->knows_use(ModelId{0}));
  EXPECT_EQ(plain->Use(ModelId{0}, ExitId{0}, 2, LaneClass{0}), kAssumedUse);
}

// Without the line that says where they come from figures are left aside, and nobody would know
// why.
TEST(ProfileFile, ResourceFiguresWithoutASourceAreWarnedOf) {
  std::string text = WithUse(R"("l1": 0.1, "l2": 0.2, "dram": 0.3, "tensor": 0.4, "fma": 1)");
  const std::string source = " \"resources_source\": \"a test\",";
  const std::size_t at = text.find(source);
  ASSERT_NE(at, std::string::npos);
  const auto warning = [](const std::string& profile) {
    const auto parsed = ParseProfile(profile, "p.json");
    EXPECT_TRUE(parsed) << parsed.error().message;
    return UseWarning("m", &parsed->models[0]).value_or("");
  };
  EXPECT_EQ(warning(text), "");
  EXPECT_THAT(warning(WithUse(R"("l1": 0, "l2": 0, "dram": 0, "tensor": 0, "fma": 0)")),
              HasSubstr("'m' uses no resources according to its profile"));
  text.erase(at, source.size());
  EXPECT_THAT(warning(text), HasSubstr("'m' has resource figures but no `resources_source`"));
  EXPECT_THAT(warning(std::string(kSmall)), HasSubstr("'m' has no resource figures in its"));
  EXPECT_THAT(UseWarning("m", nullptr).value_or(""), HasSubstr("no resource figures"));
}

TEST(ProfileFile, NamesTheMistakeInWhatBatchesUse) {
  const auto message = [](const std::string& throughput) {
    const auto profile = ParseProfile(WithUse(throughput), "p.json");
    return profile ? std::string("accepted") : profile.error().message;
  };
  EXPECT_THAT(message(R"("l1": 0.1, "l2": 0.2, "dram": 0.3, "tensor": 0.4)"),
              HasSubstr("cells[0].throughput.fma: is missing"));
  EXPECT_THAT(message(R"("l1": 1.5, "l2": 0.2, "dram": 0.3, "tensor": 0.4, "fma": 0)"),
              HasSubstr("throughput.l1: is a share of the device's peak, at most 1"));
  EXPECT_THAT(message(R"("l1": 0.1, "l2": 0.2, "l3": 0.2, "dram": 0.3, "tensor": 0.4, "fma": 0)"),
              HasSubstr("throughput.l3: unknown here; there are l1, l2, dram, tensor, fma"));
}

// Whoever edits a profile by hand is told the place of a mistake, and what would be right.
TEST(ProfileFile, NamesThePlaceOfEachMistake) {
  const struct {
    std::string from, to, message;
  } cases[] = {
      {"\"commit\"", "commit", "p.json:3:2: not valid JSON"},
      {"\"tactus_profile\": 1", "\"tactus_profile\": 2", "tactus_profile: must be a whole number"},
      {"\"provenance\": \"measured\",", "", "provenance: is missing"},
      {"[1.25, 0.75]", "[1.25, 0]", "service_trace[1]: must be a number from 1e-06 on"},
      {"[1.25, 0.75]", "[1.25, {}]", "service_trace[1]: must be a number"},
      {"[1.25, 0.75]", "1", "service_trace: must be an array of numbers"},
      {"\"service_window_ms\": 100", "\"service_window_ms\": 0",
       "service_window_ms: must be a number from 1 on"},
      {"\"service_window_ms\": 100,", "", "service_window_ms: must be a number from 1 on"},
      {"\"service_ratio\": 0.875", "\"service_ratio\": 0", "service_ratio: must be a number"},
      {"\"mean_ms\": 1.1", "\"mean_ms\": \"x\"",
       "models[0].exits[0].cells[0].mean_ms: must be a number"},
      {"\"mean_ms\": 1.1", "\"mean_ms\": -1", "cells[0].mean_ms: must be a number from 0"},
      {"\"mean_ms\": 5", "\"mean_ms\": 0", "models[0].exits[1].cells[1].mean_ms: must be above 0"},
      {"\"p99_ms\": 2", "\"p99_ms\": 9", "must not decrease"},
      {"{\"batch\": 2, \"mean_ms\": 2}", "{\"batch\": 1, \"mean_ms\": 2}",
       "cells[1].batch: is there twice"},
      {"{\"batch\": 1, \"mean_ms\": 3}, ", "",
       "models[0].exits[1].cells: batch 1 of 1 to 2 is missing"},
      {"\"batch\": 2, \"mean_ms\": 2", "\"batch\": 3, \"mean_ms\": 2",
       "must be a whole number from 1 to 2"},
      {"\"accuracy\": 0.75", "\"accuracy\": 75", "exits[1].accuracy: is a fraction"},
      {"\"name\": \"final\"", "\"name\": \"early\"", "exits[1].name: is there twice"},
      {"\"mean_ms\": 1.1", "\"mean_ms\": 1e999", "a number is too large"},
      {"\"max_batch\": 2", "\"max_batch\": 1e30", "models[0].max_batch: must be a whole number"},
      {"\"cores\": 2", "\"cores\": 2.5", "machine.cores: must be a whole number"},
      {"\"cores\": 2", "\"cores\": 18446744073709551615", "machine.cores: must be a whole number"},
  };
  for (const auto& c : cases) {
    const auto profile = ParseProfile(With(c.from, c.to), "p.json");
    ASSERT_FALSE(profile) << c.to;
    EXPECT_THAT(profile.error().message,
                AllOf(HasSubstr("p.json"), HasSubstr(c.message), HasSubstr("tactus profile")));
  }
  EXPECT_FALSE(ParseProfile("[]", "p.json"));
  EXPECT_FALSE(ParseProfile("", "p.json"));
  EXPECT_THAT(LoadProfile("/no/such/file").error().message, HasSubstr("tactus profile"));
  EXPECT_FALSE(SaveProfile(*ParseProfile(kSmall, ""), "/no/such/folder/p.json"));
}

TEST(ProfileFile, QuantilesAreLinearBetweenTheKnownOnes) {
  const ProfileCell cell{
      .mean_ms = 1.1, .min_ms = 1, .p50_ms = 2, .p95_ms = 11, .p99_ms = 15, .max_ms = 25};
  EXPECT_DOUBLE_EQ(Quantile(cell, 0), 1);
  EXPECT_DOUBLE_EQ(Quantile(cell, 0.25), 1.5);
  EXPECT_DOUBLE_EQ(Quantile(cell, 0.5), 2);
  EXPECT_DOUBLE_EQ(Quantile(cell, 0.725), 6.5);
  EXPECT_DOUBLE_EQ(Quantile(cell, 0.95), 11);
  EXPECT_DOUBLE_EQ(Quantile(cell, 0.97), 13);
  EXPECT_NEAR(Quantile(cell, 0.995), 20, 1e-9);
  EXPECT_DOUBLE_EQ(Quantile(cell, 1), 25);
}

// Policies count on one percentile plus a margin, chosen here and nowhere else.
TEST(MakeTable, TakesThePercentileAndAddsTheJitterOnce) {
  const auto profile = ParseProfile(kSmall, "p.json");
  const Model models[] = {{.name = "m", .max_batch = 2, .exits = {{"early"}, {"final"}}}};
  const auto latency = [&](ProfileOptions options, int exit, int batch) {
    const auto table = MakeTable(*profile, models, options);
    EXPECT_TRUE(table) << table.error().message;
    return table->Latency(ModelId{0}, ExitId(exit), batch, LaneClass{0});
  };
  EXPECT_EQ(latency({.percentile = 95}, 0, 1), Micros(1500));
  EXPECT_EQ(latency({.percentile = 50}, 0, 1), Micros(1050));
  EXPECT_EQ(latency({.percentile = 0}, 0, 1), Micros(1100));
  EXPECT_EQ(latency({.percentile = 99, .jitter_ms = 0.5}, 0, 1), Micros(2500));
  EXPECT_EQ(latency({.percentile = 95, .jitter_ms = 0.5}, 1, 2), Micros(5500));
  EXPECT_FALSE(MakeTable(*profile, models, {.percentile = 101}));
}

// A quicker lane takes less of what was measured, and no less of the margin.
TEST(MakeTable, HasARowForEachKindOfLane) {
  const auto profile = ParseProfile(kSmall, "p.json");
  Model model{.name = "m", .max_batch = 2, .exits = {{"early"}, {"final"}}};
  const ProfileOptions options{.jitter_ms = 0.5, .speeds = {2, 0.5}};
  const auto table = MakeTable(*profile, {&model, 1}, options);
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->lane_classes(), 2);
  EXPECT_EQ(table->Latency(ModelId{0}, ExitId{0}, 1, LaneClass{0}), Micros(750 + 500));
  EXPECT_EQ(table->Latency(ModelId{0}, ExitId{0}, 1, LaneClass{1}), Micros(3000 + 500));
  EXPECT_EQ(table->Latency(ModelId{0}, ExitId{1}, 2, LaneClass{0}), Micros(2500 + 500));
  model.slo = Millis(2);
  EXPECT_TRUE(MakeTable(*profile, {&model, 1}, options));
  model.slo = Micros(900);
  EXPECT_THAT(MakeTable(*profile, {&model, 1}, options).error().message,
              HasSubstr("(exit early, batch 1, on lanes of speed 2) takes 0.500 ms + 0.500 ms of"));
}

// A scenario that wants less than the profile knows gets just that; one that wants more an error.
TEST(MakeTable, CutsTheProfileDownAndRefusesWhatItDoesNotKnow) {
  const auto profile = ParseProfile(kSmall, "p.json");
  Model model{.name = "m", .max_batch = 1, .exits = {{"final"}}};
  const auto table = MakeTable(*profile, {&model, 1}, {});
  ASSERT_TRUE(table);
  EXPECT_EQ(table->exits(ModelId{0}), 1);
  EXPECT_EQ(table->max_batch(ModelId{0}), 1);
  EXPECT_EQ(table->Latency(ModelId{0}, ExitId{0}, 1, LaneClass{0}), Millis(3));
  const auto error = [&] { return MakeTable(*profile, {&model, 1}, {}).error().message; };
  model.max_batch = 3;
  EXPECT_THAT(error(), AllOf(HasSubstr("'m'"), HasSubstr("up to 3"), HasSubstr("1 to 2")));
  model = {.name = "m", .max_batch = 1, .exits = {{"deep"}}};
  EXPECT_THAT(error(), HasSubstr("no exit 'deep'"));
  model.name = "n";
  EXPECT_THAT(error(), HasSubstr("no model 'n'"));
}

// Refused with the arithmetic, on the best that was ever measured: 1 ms at exit 'early'.
TEST(MakeTable, RefusesAnSloThatNoBatchCanMeet) {
  const auto profile = ParseProfile(kSmall, "p.json");
  Model model{.name = "m", .slo = Millis(1), .max_batch = 2, .exits = {{"early"}, {"final"}}};
  ProfileOptions options;
  const auto error = [&] {
    const auto table = MakeTable(*profile, {&model, 1}, options);
    return table ? "none" : table.error().message;
  };
  EXPECT_EQ(
      error(),
      "model 'm': no batch can meet its SLO of 1 ms: the quickest (exit early, batch 1) takes "
      "1.000 ms + 0.060 ms of hand-over at best; give it an SLO above 1.060 ms, or a quicker "
      "exit");
  model.slo = Micros(1060);
  EXPECT_EQ(error(), "none") << "its P95 is 1.5 ms, but some would be in time";
  options.jitter_ms = 0.5;
  EXPECT_THAT(error(), HasSubstr("1.000 ms + 0.500 ms of jitter + 0.060 ms of hand-over"));
  model.slo = Millis(3);
  EXPECT_EQ(error(), "none");
  model.exits = {{"final"}};
  EXPECT_THAT(error(), AllOf(HasSubstr("exit final, batch 1"), HasSubstr("above 3.560 ms")));
  model.slo = {};
  EXPECT_EQ(error(), "none") << "no SLO is stated";
}

TEST(ProfileWarnings, SpeakOfShrinkingAndNoisyLatencies) {
  auto profile = ParseProfile(kSmall, "p.json");
  EXPECT_THAT(Warnings(*profile), IsEmpty());
  profile->models[0].exits[0].cells[1].p50_ms = 0.5;
  profile->models[0].exits[1].cells[0].p50_ms = 0.9;
  profile->models[0].exits[0].cells[0].cv = 0.4;
  EXPECT_THAT(
      Warnings(*profile),
      ElementsAre(AllOf(
          HasSubstr("m: 2 of 4 latencies fall as batches grow or exits deepen: batch 2 of exit "
                    "early takes 0.500 ms, less than batch 1 (1.050 ms); 1 of 4 were measured "
                    "unsteadily"),
          HasSubstr("batch 1 of exit early varies by 40 %; measure again while nothing else"))));
  profile->models[0].exits[0].cells[1].p50_ms = 3;
  profile->models[0].exits[0].cells[0].cv = 0;
  EXPECT_THAT(Warnings(*profile),
              ElementsAre(AllOf(HasSubstr("1 of 4 latencies fall"), HasSubstr("the exit before"),
                                Not(HasSubstr("noisy")))));
}

// Of latencies of a few microseconds every one would be an exception.
TEST(ProfileWarnings, AreSilentOfDifferencesThatNoMeasurementTellsApart) {
  auto profile = ParseProfile(kSmall, "p.json");
  for (ProfiledExit& exit : profile->models[0].exits) {
    double ms = 0.020;
    for (ProfileCell& cell : exit.cells) {
      cell.p50_ms = (ms -= 0.001);
      cell.cv = 0.9;  // the clock's noise, and an interrupt
    }
  }
  EXPECT_THAT(Warnings(*profile), IsEmpty());
}

TEST(ImportAlphaBeta, MakesALineOfLatenciesForEachModel) {
  const TempFile file(
      "# from a paper\nmodel,alpha_ms,beta_ms,other,slo_ms\nx,1.5,4,,30\ny,0.5,1,,9\n");
  const auto profile = ImportAlphaBeta(file.path(), 4);
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_EQ(profile->models.size(), 2u);
  EXPECT_EQ(profile->models[0].slo_ms, 30);
  EXPECT_EQ(profile->models[0].exits[0].name, "final");
  EXPECT_DOUBLE_EQ(profile->models[0].exits[0].cells[3].p95_ms, 10);
  EXPECT_NEAR(profile->models[0].exits[0].alpha_ms, 1.5, 1e-9);
  EXPECT_THAT(profile->provenance, HasSubstr("from a paper"));
}

TEST(ImportAlphaBeta, NamesTheLineOfAMistake) {
  for (const auto& [text, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {"model,alpha_ms,beta_ms\nx,1\n", ":2: 2 cells where the header has 3"},
           {"model,alpha_ms,beta_ms\nx,1,one\n", ":2: column beta_ms: 'one' is not a number"},
           {"model,alpha_ms,beta_ms\nx,-1,1\n", ":2: column alpha_ms"},
           {"model,alpha_ms,beta_ms\nx,1,1\nx,1,1\n", ":3: this model is there twice"},
           {"model,alpha_ms\nx,1\n", "no column 'beta_ms'"},
           {"model,alpha_ms,beta_ms\n", "holds no model"},
           {"\n", "has no header"},
           {"", "this file is empty"}}) {
    const TempFile file(text);
    const auto profile = ImportAlphaBeta(file.path(), 4);
    ASSERT_FALSE(profile) << text;
    EXPECT_THAT(profile.error().message, HasSubstr(message));
  }
}

TEST(ImportCells, ReadsQuantilesOrASingleLatency) {
  const TempFile file(
      "model,exit,batch,min_ms,p50_ms,p95_ms,n\n"
      "m,e1,2,3,4,5,100\nm,e1,1,1,2,3,100\nm,e2,1,5,6,7,100\nm,e2,2,8,9,10,100\n");
  const auto profile = ImportCells(file.path());
  ASSERT_TRUE(profile) << profile.error().message;
  const ProfiledModel& model = profile->models[0];
  EXPECT_EQ(model.max_batch, 2);
  EXPECT_EQ(model.exits[0].name, "e1");
  EXPECT_EQ(model.exits[0].cells[1].min_ms, 3);
  EXPECT_EQ(model.exits[0].cells[1].p99_ms, 5);
  EXPECT_EQ(model.exits[0].cells[1].repetitions, 100);
  const TempFile single("model,exit,batch,latency_ms\nm,final,1,7\n");
  EXPECT_EQ(ImportCells(single.path())->models[0].exits[0].cells[0].p95_ms, 7);
}

TEST(ImportCells, RefusesHolesAndDoubles) {
  const TempFile hole("model,exit,batch,latency_ms\nm,a,1,7\nm,a,3,7\n");
  EXPECT_THAT(ImportCells(hole.path()).error().message, HasSubstr("batch 2 of 1 to 3 is missing"));
  const TempFile twice("model,exit,batch,latency_ms\nm,a,1,7\nm,a,1,7\n");
  EXPECT_THAT(ImportCells(twice.path()).error().message,
              HasSubstr(":3: this batch is there twice"));
  const TempFile half("model,exit,batch,latency_ms\nm,a,1.5,7\n");
  EXPECT_THAT(ImportCells(half.path()).error().message, HasSubstr("column batch"));
}

// What `tactus profile` measured is lost otherwise, and an older profile refused.
TEST(ProfileFile, KeepsWhatThreadsBring) {
  const std::string text =
      With(R"("accuracy": 0.5,)",
           R"("accuracy": 0.5, "by_threads": [{"threads": 1, "one_ms": 1.5, "largest_ms": 3},
              {"threads": 4, "one_ms": 1, "largest_ms": 1.25}],)");
  const auto read = ParseProfile(text, "p.json");
  ASSERT_TRUE(read) << read.error().message;
  const std::vector<ProfiledThreads> expected = {{1, 1.5, 3}, {4, 1, 1.25}};
  EXPECT_EQ(read->models[0].exits[0].by_threads, expected);
  EXPECT_THAT(read->models[0].exits[1].by_threads, IsEmpty());
  const TempFile file("");
  ASSERT_TRUE(SaveProfile(*read, file.path()));
  const auto again = LoadProfile(file.path());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->models[0].exits[0].by_threads, expected);
}

TEST(ProfileFile, NamesWhatIsWrongOfThreads) {
  const auto wrong = [](const std::string& measured) {
    const auto read = ParseProfile(
        With(R"("accuracy": 0.5,)", R"("accuracy": 0.5, "by_threads": )" + measured + ","), "p");
    return read ? "" : read.error().message;
  };
  EXPECT_THAT(wrong(R"([{"threads": 0, "one_ms": 1, "largest_ms": 1}])"),
              HasSubstr("by_threads[0].threads"));
  EXPECT_THAT(wrong(R"([{"threads": 2, "one_ms": 1, "largest_ms": 1},
                        {"threads": 2, "one_ms": 1, "largest_ms": 1}])"),
              HasSubstr("must ascend"));
  EXPECT_THAT(wrong(R"([{"threads": 2, "one_ms": 0, "largest_ms": 1}])"), HasSubstr("one_ms"));
  EXPECT_THAT(wrong(R"({"threads": 2})"), HasSubstr("must be an array"));
}

}  // namespace
}  // namespace tactus
