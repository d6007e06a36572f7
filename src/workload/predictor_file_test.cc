// Without these what was learnt of one set of models could be taken for what is known of another,
// or a broken file could start a policy with parameters that are none.
#include "workload/predictor_file.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

PredictorFile Made() {
  return {.policy = "strait",
          .device = "an L4, abc",
          .models = {{"a", 1}, {"b", 2}},
          .learned = {.steps = 7,
                      .parameters = {{"scale", 0.1 + 0.2, -1e-17, 1.0 / 3}, {"base", 2, 0, 0}}}};
}

TEST(PredictorFile, IsTheSameToTheLastBitAfterItWasWrittenAndRead) {
  const TemporaryFolder folder;
  const auto path = folder / "predictor.json";
  ASSERT_TRUE(SavePredictor(Made(), path));
  const auto loaded = LoadPredictor(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(*loaded, Made());
}

TEST(PredictorFile, WhatCannotBeReadOrWrittenSaysWhere) {
  const auto absent = LoadPredictor("/no/such/place.json");
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message, HasSubstr("/no/such/place.json: cannot read"));
  const TemporaryFolder folder;
  const auto directory = LoadPredictor(folder.path());
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().message, HasSubstr(folder.path().string() + ": is a directory"));
  const auto empty_file = folder / "empty.json";
  std::ofstream(empty_file).close();
  const auto empty = LoadPredictor(empty_file);
  ASSERT_FALSE(empty);
  EXPECT_THAT(empty.error().message,
              HasSubstr("empty.json: this predictor is empty; write a new one"));
  const auto kept = SavePredictor(Made(), "/no/such/place.json");
  ASSERT_FALSE(kept);
  EXPECT_THAT(kept.error().message, HasSubstr("/no/such/place.json: cannot write"));
}

TEST(PredictorFile, WhatIsWrongIsNamedByItsPlaceAndWithARemedy) {
  const std::string good = PredictorText(Made());
  const auto with = [&](const std::string& old, const std::string& fresh) {
    std::string text = good;
    const std::size_t at = text.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    return at == std::string::npos ? text : text.replace(at, old.size(), fresh);
  };
  const struct {
    std::string text;
    const char* says;
  } cases[] = {
      {"", "p.json:1:1: not valid JSON"},
      {good.substr(0, good.size() / 2), "not valid JSON"},
      {"[]", "p.json: must be an object"},
      {"{}", "p.json: tactus_predictor: is missing"},
      {with("\"tactus_predictor\": 1", "\"tactus_predictor\": 2"), "tactus_predictor: must be"},
      {with("\"policy\": \"strait\"", "\"policy\": 5"), "policy: must be a string"},
      {with("\"priority\": 2", "\"priority\": 0"), "models[1].priority: must be a whole number"},
      {with("\"name\": \"b\"", "\"name\": \"a\""), "models[1].name: is there twice"},
      {with("\"steps\": 7", "\"steps\": 7, \"stepz\": 8"),
       "stepz: unknown here; there are tactus_predictor, policy"},
      {with("\"square\": 0.0", "\"square\": 0.0, \"cube\": 1"),
       "parameters[1].cube: unknown here; there are name, value"},
      {with("\"steps\": 7", "\"steps\": -1"), "steps: must be a whole number"},
      {with("\"steps\": 7", "\"steps\": NaN"), "p.json:5:"},
      {with("\"value\": 2.0", "\"value\": NaN"), "not valid JSON"},
      {with("\"value\": 2.0", "\"value\": null"), "parameters[1].value: must be a number"},
      {with("\"value\": 2.0", "\"value\": 1e999"), "a number is too large"},
      {with("\"value\": 2.0,", ""), "parameters[1].value: is missing"},
      {with("\"square\": 0.0", "\"square\": -0.5"), "parameters[1].square: must be a number"},
  };
  for (const auto& [text, says] : cases) {
    const auto parsed = ParsePredictor(text, "p.json");
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr(says));
    EXPECT_THAT(parsed.error().message, HasSubstr("p.json:"));
    EXPECT_THAT(parsed.error().message, HasSubstr("write a new one"));
  }
}

TEST(PredictorFile, OfSomethingElseIsRefusedWithTheDifference) {
  const auto refused = [](const std::vector<PredictorFile::Served>& models,
                          const std::string& policy = "strait",
                          const std::string& device = "an L4, abc") {
    const auto fits = CheckPredictor(
        Made(), "p.json", {.policy = policy, .device = device, .models = models, .learned = {}});
    return fits ? std::string("it fits") : fits.error().message;
  };
  EXPECT_EQ(refused({{"b", 2}, {"a", 1}}), "it fits") << "the order does not matter";
  EXPECT_THAT(refused({{"a", 1}, {"b", 2}}, "other"),
              HasSubstr("p.json: learnt by policy 'strait', not by 'other'; write a new one"));
  EXPECT_THAT(refused({{"a", 1}, {"b", 2}}, "strait", "an A10G, def"),
              HasSubstr("p.json: learnt on another device: 'an L4, abc', not 'an A10G, def';"));
  EXPECT_THAT(refused({{"a", 1}}), HasSubstr("it knows 'b', not served here;"));
  EXPECT_THAT(refused({{"a", 1}, {"b", 2}, {"c", 1}, {"d", 1}}),
              HasSubstr("other models: it does not know 'c', 'd';"));
  EXPECT_THAT(refused({{"a", 1}, {"c", 2}}),
              HasSubstr("it knows 'b', not served here; it does not know 'c';"));
  EXPECT_THAT(refused({{"a", 1}, {"b", 1}}),
              HasSubstr("model 'b' had priority 2 there and has 1 here"));
}

TEST(PredictorFile, ADeviceIsNamedForPeopleAndByItsFingerprint) {
  EXPECT_EQ(DeviceName({.fingerprint = "abc", .cpu = "an L4"}), "an L4, abc");
  EXPECT_EQ(DeviceName({.fingerprint = "abc"}), "abc");
}

TEST(PredictorFile, ModelsWhoseSlotsAreFreeAreNotServed) {
  EXPECT_EQ(ServedPartsOf({{.name = "a", .priority = 3}, {.name = "gone", .loaded = false}}),
            (std::vector<PredictorFile::Served>{{"a", 3}}));
}

}  // namespace
}  // namespace tactus
