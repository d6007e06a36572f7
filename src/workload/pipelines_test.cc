// A pipeline that is read otherwise than it is written loads its models with something else.
#include "workload/pipelines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workload/arrivals.h"

namespace tactus {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kTraffic = R"([arrivals]
rate_rps = 30
popularity = "ratio"
[[models]]
name = "ssd"
[[models]]
name = "goo"
[[models]]
name = "vgg"
[[pipelines]]
name = "traffic"
slo_ms = 100
[[pipelines.stages]]
name = "detect"
model = "ssd"
[[pipelines.stages]]
model = "goo"
after = ["detect"]
count = 3
[[pipelines.stages]]
name = "faces"
model = "vgg"
after = ["detect"]
)";

Scenario Read(const std::string& text) {
  auto scenario = ParseScenario(text, "f.toml");
  EXPECT_TRUE(scenario) << scenario.error().message;
  return *scenario;
}

std::string ErrorOf(const std::string& text) {
  const auto scenario = ParseScenario(text, "f.toml");
  return scenario ? "accepted" : scenario.error().message;
}

// Every batch takes so long; at most 4 in one.
ProfileFile ProfileOf(std::vector<std::pair<std::string, double>> ms_each) {
  ProfileFile profile;
  for (const auto& [name, ms] : ms_each) {
    ProfiledModel& model = profile.models.emplace_back();
    model.name = name;
    model.max_batch = 4;
    ProfiledExit& exit = model.exits.emplace_back();
    exit.name = "final";
    for (int b = 1; b <= 4; ++b) {
      exit.cells.push_back(
          {.mean_ms = b * ms, .min_ms = b * ms, .p50_ms = b * ms, .p95_ms = b * ms});
    }
  }
  return profile;
}

TEST(Pipelines, AreReadAsWritten) {
  const Scenario s = Read(kTraffic);
  ASSERT_EQ(s.pipelines.size(), 1u);
  const ScenarioPipeline& p = s.pipelines[0];
  EXPECT_EQ(p.name, "traffic");
  EXPECT_EQ(p.slo_ms, 100);
  ASSERT_EQ(p.stages.size(), 3u);
  EXPECT_EQ(p.stages[1].name, "goo");  // the model's, as it has none of its own
  EXPECT_EQ(p.stages[1].count, 3);
  EXPECT_THAT(p.stages[2].after, ElementsAre("detect"));
}

TEST(Pipelines, ARequestBringsItsModelsTheirs) {
  Scenario s = Read(kTraffic);
  EXPECT_THAT(ArrivalRates(s), ElementsAre(0, 0, 0, DoubleEq(6)));  // of five runs each
  EXPECT_THAT(Rates(s), ElementsAre(DoubleEq(6), DoubleEq(18), DoubleEq(6)));
  ASSERT_TRUE(Override(s, "rate_rps", "60"));
  EXPECT_THAT(Rates(s), ElementsAre(DoubleEq(12), DoubleEq(36), DoubleEq(12)));
  // A model beside it shares the total, also where the pipeline states a rate of its own.
  Scenario beside = Read(kTraffic + "[[models]]\nname = 'x'\nratio = 2\n");
  EXPECT_THAT(ArrivalRates(beside), ElementsAre(0, 0, 0, DoubleEq(20), DoubleEq(2)));
  ASSERT_TRUE(Override(beside, "pipelines.traffic.rate_rps", "7"));
  EXPECT_THAT(ArrivalRates(beside), ElementsAre(0, 0, 0, DoubleEq(20), DoubleEq(7)));
  ASSERT_TRUE(Override(beside, "pipelines.*.rate_rps", "8"));
  EXPECT_EQ(beside.pipelines[0].rate_rps, 8);
}

// One stream for each model and each pipeline.
TEST(Pipelines, RequestsArriveAsTheScenarioSays) {
  Scenario s = Read(kTraffic);
  s.process = ArrivalProcess::kUniform;
  const auto streams = MakeArrivals(s, kStart + Seconds(10));
  ASSERT_TRUE(streams) << streams.error().message;
  ASSERT_EQ(streams->size(), 4u);
  EXPECT_EQ((*streams)[0]->Next(), kNever);
  int requests = 0;
  while ((*streams)[3]->Next() != kNever) ++requests;
  EXPECT_EQ(requests, 60);
}

TEST(Pipelines, NamesThePlaceOfEachMistake) {
  const std::string head = "[[models]]\nname = 'a'\n[[models]]\nname = 'b'\n[[pipelines]]\n";
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {"slo_ms = 9\n", "f.toml:5:1: [[pipelines]]: needs a name"},
      {"name = 'p'\n", "f.toml:5:1: pipeline 'p': it has no slo_ms"},
      {"name = 'p'\nslo = 9\n",
       "f.toml:7:7: slo: unknown in [[pipelines]] (did you mean 'slo_ms'?); it may hold name"},
      {"name = 'p'\nslo_ms = 9\n", "f.toml:5:1: pipeline 'p': it has no stages"},
      {"name = 'p'\nslo_ms = 9\nstages = 3\n",
       "f.toml:8:10: pipelines.stages: write each as [[pipelines.stages]]"},
      {"name = 'p'\nslo_ms = 9\nstages = [{name = 's'}]\n",
       "f.toml:8:11: [[pipelines.stages]]: needs a model"},
      {"name = 'p'\nslo_ms = 9\nstages = [{model = 'c'}]\n",
       "f.toml:8:11: pipeline 'p': stage 'c': no [[models]] is called 'c'; add it"},
      {"name = 'p'\nslo_ms = 9\nstages = [{model = 'a', count = 0}]\n",
       "f.toml:8:33: count: must be a whole number from 1 to 1000"},
      {"name = 'p'\nslo_ms = 9\nstages = [{model = 'a', after = ['b']}]\n",
       "f.toml:8:11: pipeline 'p': stage 'a' is after 'b': there is no stage 'b'; there are: a"},
      {"name = 'p'\nslo_ms = 9\nstages = [{model = 'a', after = ['b']}, {model = 'b', after = "
       "['a']}]\n",
       "f.toml:5:1: pipeline 'p': its stages wait for each other in a circle: 'a' is after 'b' is "
       "after 'a'"},
      {"name = 'p'\nslo_ms = 9\nstages = [{model = 'a', budget_ms = 3}, {model = 'b'}]\n",
       "f.toml:8:41: pipeline 'p': stage 'b' has no budget_ms and others have; give one to every "
       "stage"},
      {"name = 'p'\nslo_ms = 9\nstages = [{model = 'a', budget_ms = 6}, {model = 'b', after = "
       "['a'], budget_ms = 4}]\n",
       "f.toml:5:1: pipeline 'p': budget_ms of a + b come to 10 ms, more than its slo_ms of 9; "
       "lower them"},
      {"name = 'b'\nslo_ms = 9\nstages = [{model = 'a'}]\n",
       "f.toml:5:1: a pipeline is called 'b', which a model or another pipeline is"},
  };
  for (const auto& c : cases) EXPECT_THAT(ErrorOf(head + c.text), HasSubstr(c.message));
}

// What a stage's model says of its own rate or SLO would be read by nobody.
TEST(Pipelines, AStagesModelSaysNothingThatWouldChangeNothing) {
  const auto with = [](const std::string& line) {
    std::string text = kTraffic;
    return text.replace(text.find("name = \"goo\""), 12, "name = \"goo\"\n" + line);
  };
  EXPECT_THAT(ErrorOf(with("slo_ms = 20")),
              HasSubstr("model 'goo' gets its requests from [[pipelines]]"));
  EXPECT_THAT(ErrorOf(with("rate_rps = 20")), HasSubstr("leave out its rate_rps"));
  EXPECT_THAT(ErrorOf(with("ratio = 20")), HasSubstr("profile_as = \"goo\""));
  Scenario s = Read(kTraffic);
  EXPECT_THAT(Override(s, "models.*.slo_ms", "20").error().message,
              HasSubstr("leave out its slo_ms"));
  EXPECT_THAT(Override(s, "pipelines.x.slo_ms", "20").error().message,
              HasSubstr("[[pipelines]] have no 'x'"));
  ASSERT_TRUE(Override(s, "pipelines.traffic.rate_rps", "3"));
  EXPECT_THAT(Override(s, "rate_rps", "20").error().message,
              HasSubstr("and every pipeline its own, so this would change nothing"));
}

TEST(Pipelines, StagesDivideTheSloAsTheLargestBatchThatFitsTwice) {
  const Scenario s = Read(kTraffic);
  // Batches of 4 take 80 ms along detect and faces, those of 2 take 40: twice 40 is within 100 ms.
  const ProfileFile profile = ProfileOf({{"ssd", 10}, {"goo", 2}, {"vgg", 10}});
  const auto pipelines = MakePipelines(s, profile);
  ASSERT_TRUE(pipelines) << pipelines.error().message;
  const auto& stages = (*pipelines)[0].stages;
  EXPECT_EQ(stages[0].deadline, Millis(50));
  EXPECT_EQ(stages[1].deadline, Millis(100));
  EXPECT_EQ(stages[2].budget, Millis(50));
  const PipelineLevels& levels = (*pipelines)[0].levels;
  EXPECT_EQ(levels.fixed(levels.of(StageId{1})), 3);
  const auto models = MakeModels(s, profile);
  ASSERT_TRUE(models) << models.error().message;
  for (const Model& model : *models) EXPECT_EQ(model.slo, Millis(50)) << model.name;
}

// detect finds none, one or two; each is cropped, and both crops of a row are read.
const std::string kRows = R"([arrivals]
rate_rps = 50
[[models]]
name = "detect"
[[models]]
name = "crop"
[[models]]
name = "join"
[[pipelines]]
name = "p"
slo_ms = 100
answer = "each"
deadlines = "redivide"
[[pipelines.stages]]
model = "detect"
rows = [1, 1, 2]
[[pipelines.stages]]
model = "crop"
after = ["detect"]
count = 2
[[pipelines.stages]]
model = "join"
after = ["crop"]
gather = "detect"
)";

TEST(Pipelines, RowsMultiplyWhatComesAfterThem) {
  const Scenario s = Read(kRows);
  EXPECT_THAT(RunsOfStages(s.pipelines[0]), ElementsAre(1, DoubleEq(2.5), 1));
  // 50 requests a second, of which a pipeline request is 4.5 on average.
  EXPECT_THAT(Rates(s), ElementsAre(DoubleEq(100. / 9), DoubleEq(250. / 9), DoubleEq(100. / 9)));
  const PipelineDeclaration declared = DeclarationOf(s.pipelines[0]);
  EXPECT_EQ(declared.answer, AnswerRule::kEach);
  EXPECT_EQ(declared.deadlines, DeadlineRule::kRedivide);
  EXPECT_TRUE(declared.stages[0].demultiply);
  EXPECT_EQ(declared.stages[2].gather, "detect");
  const auto with = [](const std::string& was, const std::string& is) {
    std::string text = kRows;
    return text.replace(text.find(was), was.size(), is);
  };
  EXPECT_THAT(ErrorOf(with("[1, 1, 2]", "[0, 0]")),
              HasSubstr("stage 'detect': its rows are weights of 0, 1, 2 and so on rows"));
  EXPECT_THAT(ErrorOf(with("gather = \"detect\"", "gather = \"crop\"")),
              HasSubstr("stage 'join' gathers 'crop', which is not a stage with rows before it"));
  EXPECT_THAT(ErrorOf(with("\"each\"", "\"some\"")), HasSubstr("must be one of all, each"));
}

TEST(Pipelines, DeadlinesMayBeEqualOrWhole) {
  Scenario s = Read(kTraffic);
  const ProfileFile profile = ProfileOf({{"ssd", 10}, {"goo", 2}, {"vgg", 30}});
  ASSERT_TRUE(Override(s, "pipelines.traffic.deadlines", "equal"));
  const auto equal = MakePipelines(s, profile);
  ASSERT_TRUE(equal) << equal.error().message;
  EXPECT_EQ((*equal)[0].stages[0].deadline, Millis(50));
  ASSERT_TRUE(Override(s, "pipelines.traffic.deadlines", "whole"));
  const auto whole = MakePipelines(s, profile);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ((*whole)[0].stages[0].deadline, Millis(100));
  EXPECT_EQ((*whole)[0].stages[1].budget, Millis(100));
  for (ScenarioStage& stage : s.pipelines[0].stages) stage.budget_ms = 30;
  EXPECT_THAT(ValidatePipelines(s).error().message,
              HasSubstr("its deadlines are equal or whole, which no budget_ms would change"));
}

// The batch matters where latencies grow unlike each other: 1 + b and 5 ms.
TEST(Pipelines, TheBatchThatDividesTheSloIsOneThatItSustains) {
  const Scenario s = Read(
      "[[models]]\nname = 'a'\n[[models]]\nname = 'b'\n[[pipelines]]\nname = "
      "'p'\nslo_ms = 16\nstages = [{model = 'a'}, {model = 'b', after = "
      "['a']}]\n");
  ProfileFile profile = ProfileOf({{"a", 1}, {"b", 1}});
  for (int b = 1; b <= 4; ++b) {
    profile.models[0].exits[0].cells[b - 1].mean_ms = 1 + b;
    profile.models[1].exits[0].cells[b - 1].mean_ms = 5;
  }
  const auto pipelines = MakePipelines(s, profile);  // 2 (3 + 5) is 16; 2 (4 + 5) is more
  ASSERT_TRUE(pipelines) << pipelines.error().message;
  EXPECT_EQ((*pipelines)[0].stages[0].deadline, Millis(6));
}

TEST(Pipelines, RefusesWhatNoBatchCanMeet) {
  const ProfileFile profile = ProfileOf({{"ssd", 70}, {"goo", 2}, {"vgg", 40}});
  const auto slow = MakePipelines(Read(kTraffic), profile);
  ASSERT_FALSE(slow);
  EXPECT_EQ(
      slow.error().message,
      "pipeline 'traffic': no batches can meet its SLO of 100 ms: the quickest along detect + "
      "faces take 70.000 + 40.000 = 110.000 ms at best; give it an SLO above that, or quicker "
      "exits");
  Scenario s = Read(kTraffic);
  for (ScenarioStage& stage : s.pipelines[0].stages) stage.budget_ms = 30;
  const auto budget = MakeModels(s, ProfileOf({{"ssd", 10}, {"goo", 2}, {"vgg", 40}}));
  ASSERT_FALSE(budget);
  EXPECT_THAT(budget.error().message,
              HasSubstr("pipeline 'traffic', stage 'faces': no batch can meet its budget of 30 ms: "
                        "the quickest of 'vgg' takes 40.000 ms at best"));
}

// A model of two stages is planned for by the shorter budget of the two.
TEST(Pipelines, AModelOfTwoStagesHasTheirLeastBudgetAsItsSlo) {
  const Scenario s = Read(
      "[[models]]\nname = 'a'\n[[pipelines]]\nname = 'p'\nslo_ms = 60\nstages = "
      "[{name = 'x', model = 'a', budget_ms = 40}, {name = 'y', model = 'a', "
      "after = ['x'], budget_ms = 15}]\n");
  const auto models = MakeModels(s, ProfileOf({{"a", 1}}));
  ASSERT_TRUE(models) << models.error().message;
  EXPECT_EQ((*models)[0].slo, Millis(15));
}

}  // namespace
}  // namespace tactus
