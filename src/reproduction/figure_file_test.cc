// Every figure of every paper is a file: one that cannot be read would show only when it is asked
// for, after hours.
#include "reproduction/figure_file.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/source_path_for_test.h"
#include "base/temporary_folder_test.h"
#include "experiment/experiment.h"
#include "reproduction/answers.h"
#include "reproduction/fleet_answers.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path kFigures = SourcePath("figures");

TEST(FigureFile, EveryPointOfEveryPaperNamesWhatThereIs) {
  for (const char* key : {"edgeserving", "symphony", "strait", "gpulets", "octopinf"}) {
    const auto paper = LoadPaper(kFigures / key, {});
    ASSERT_TRUE(paper) << paper.error().message;
    EXPECT_FALSE(paper->figures.empty());
    const ReproduceOptions options{
        .out = {}, .scenarios = SourcePath("scenarios/") + paper->key, .scheduler = {}};
    for (const Figure& figure : paper->figures) {
      for (const FigureSeries& series : figure.series) {
        ASSERT_FALSE(series.points.empty()) << key << " " << figure.id << " " << series.label;
        const FigurePoint& point = series.points.front();
        if (point.scenario.empty()) continue;  // what it asks, a solver or a bench answers
        if (figure.question == Question::kFleet) {
          const auto fleet = HashOfFleet(point, options, 0);
          EXPECT_TRUE(fleet) << key << " " << figure.id << ": " << fleet.error().message;
          continue;
        }
        const auto loaded = LoadPoint(point, options);
        EXPECT_TRUE(loaded) << key << " " << figure.id << ": " << loaded.error().message;
      }
    }
  }
}

TEST(FigureFile, StandsForValuesInItsSettings) {
  const auto paper = LoadPaper(kFigures / "edgeserving", {"4"});
  ASSERT_TRUE(paper) << paper.error().message;
  ASSERT_EQ(paper->figures.size(), 1u);
  EXPECT_EQ(paper->figures[0].Heading(), "Figure 4");
  EXPECT_EQ(paper->figures[0].Stem(), "fig04");
  for (const FigureSeries& series : paper->figures[0].series) {
    for (const FigurePoint& point : series.points) {
      for (const std::string& setting : point.settings) {
        EXPECT_EQ(setting.find('{'), std::string::npos) << setting;
      }
    }
  }
}

TEST(FigureFile, SaysWhichFileIsWrongAndWhatThereIs) {
  EXPECT_THAT(LoadPaper("/nowhere", {}).error().message, HasSubstr("give --figures DIR"));
  EXPECT_THAT(LoadPaper(kFigures / "edgeserving", {"99"}).error().message,
              HasSubstr("--figure 99: EdgeServing has 4, "));
  const TemporaryFolder folder;
  std::ofstream(folder / "paper.toml") << "title = 'P'\nfigures = ['1']\n";
  std::ofstream(folder / "fig01.toml") << "ask = 'nothing'\n";
  EXPECT_THAT(LoadPaper(folder.path(), {}).error().message,
              HasSubstr("fig01.toml: ask = 'nothing' is no question"));
  std::ofstream(folder / "fig01.toml") << "ask = 'fleet'\n[[series]]\nlabel = 'a, b'\n";
  EXPECT_THAT(LoadPaper(folder.path(), {}).error().message,
              HasSubstr("fig01.toml: label 'a, b': write it without a comma"));
}

}  // namespace
}  // namespace tactus
