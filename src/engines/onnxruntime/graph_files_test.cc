// The files that a model is loaded from: read at every load, and an error with a remedy that fits
// where they are not what they should be.
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/source_path_for_test.h"
#include "base/temporary_folder_test.h"
#include "engines/onnxruntime/engine_fixture_for_test.h"
#include "engines/submit_testing.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Row;
using testing::RunBatch;
using testing::Values;

class GraphFiles : public OnnxEngineFixture {
 protected:
  ModelHandle Load(ModelSpec spec) {
    auto handle = engine_->Load(spec, LaneSpec{});
    EXPECT_TRUE(handle) << handle.error().message;
    return handle.value_or(ModelHandle{});
  }
  ModelSpec WithGraph(const std::string& bytes) {
    std::ofstream(folder_ / "g.onnx", std::ios::binary) << bytes;
    ModelSpec spec{.name = "m", .max_batch = 10};
    spec.exits = {{"1", folder_ / "g.onnx"}};
    return spec;
  }

  const fs::path root_ = kSourceDir;
  const TemporaryFolder folder_;
};

// Whoever loads again wants what the files hold now, however they came there, while the version
// before still serves. The lanes of one load serve the same, whatever happens to the files
// meanwhile.
TEST_F(GraphFiles, ALoadReadsTheFilesAndItsLanesShareWhatItRead) {
  const fs::path graph = folder_ / "g.onnx";
  const fs::path data = folder_ / "weights.bin";
  const auto write = [&](const fs::path& path, float weight) {
    const std::vector<float> four(4, weight);
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(four.data()), 16);
  };
  const auto keeping_time = [&](float weight, const fs::path& into) {
    const auto written = fs::last_write_time(data);
    write(into, weight);
    fs::last_write_time(into, written);
    if (into != data) fs::rename(into, data);
  };
  const std::vector<std::function<void(float)>> ways = {
      [&](float weight) { write(data, weight); },
      [&](float weight) { keeping_time(weight, data); },
      [&](float weight) { keeping_time(weight, folder_ / "aside"); },
      [&](float weight) {
        write(folder_ / "weights.bin.new", weight);
        fs::rename(folder_ / "weights.bin.new", data);
      },
  };
  fs::copy_file(root_ / "tests/data/weights.onnx", graph);
  ModelSpec spec{.name = "m", .max_batch = 4};
  spec.exits = {{"1", graph}};
  const auto serves = [&](ModelHandle model) {
    const BatchResult result = RunBatch(*engine_, model, Row().Add<float>({1, 4}, {0, 0, 0, 0}));
    EXPECT_TRUE(result.status) << result.status.error().message;
    return result.status ? Values<float>(result.output->tensors[0].data)[0] : -1;
  };
  write(data, 1);
  std::vector<ModelHandle> loaded;
  const auto load = [&](std::uint64_t number) {
    spec.load = number;
    return loaded.emplace_back(Load(spec));
  };
  EXPECT_EQ(serves(load(1)), 1);
  for (std::size_t way = 0; way < ways.size(); ++way) {
    const float before = static_cast<float>(way) + 1;
    ways[way](before + 1);
    EXPECT_EQ(serves(load(way + 1)), before) << "another lane of the load before, way " << way;
    EXPECT_EQ(serves(load(way + 2)), before + 1) << "way " << way;
    for (const ModelHandle each : {loaded.front(), loaded[1]}) {
      EXPECT_EQ(serves(each), 1) << "what serves changes under its callers, way " << way;
    }
  }
  // Cut short in place, as a copy begins: what serves goes on.
  fs::resize_file(data, 1);
  EXPECT_EQ(serves(loaded.back()), 5);
  spec.load = 0;
  EXPECT_THAT(LoadError(spec).message, HasSubstr("g.onnx"));
}

// The library maps what branches name, whatever it is given for the main graph.
TEST_F(GraphFiles, WeightsOfABranchAndOfAConstantAreReadOnce) {
  fs::copy_file(root_ / "tests/data/inner.onnx", folder_ / "g.onnx");
  const auto write = [&](float weight) {
    const std::array<float, 4> weights{weight, weight, weight, weight};
    std::ofstream file(folder_ / "weights.bin", std::ios::binary);
    file.write(reinterpret_cast<const char*>(weights.data()), sizeof weights);
  };
  ModelSpec spec{.name = "m", .max_batch = 4};
  spec.exits = {{"1", folder_ / "g.onnx"}};
  const auto serves = [&](ModelHandle model) {
    const BatchResult result = RunBatch(*engine_, model, Row().Add<float>({1, 4}, {0, 0, 0, 0}));
    EXPECT_TRUE(result.status) << result.status.error().message;
    return result.status ? Values<float>(result.output->tensors[0].data)[0] : -1;
  };
  write(1);
  const auto first = engine_->Load(spec, LaneSpec{});
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(serves(*first), 2);
  write(3);
  EXPECT_EQ(serves(*first), 2) << "nobody asked for a load";
  ModelSpec again = spec;
  const auto second = engine_->Load(again, LaneSpec{});
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(serves(*second), 6);
  EXPECT_NE(again.contents, spec.contents);
  fs::resize_file(folder_ / "weights.bin", 0);
  EXPECT_EQ(serves(*second), 6);
  EXPECT_THAT(LoadError(spec).message, HasSubstr("g.onnx"));
}

// The library takes such names, but does not find by them what it is given.
TEST_F(GraphFiles, WeightsWhoseNamesAreNotStraightAreReadOnce) {
  std::ifstream file(root_ / "tests/data/weights.onnx", std::ios::binary);
  const std::string graph{std::istreambuf_iterator<char>(file), {}};
  fs::create_directory(folder_ / "a");
  for (const std::string name : {"./eight.bin", "a/../w1.bin"}) {
    std::string bytes = graph;
    bytes.replace(bytes.find("weights.bin"), name.size(), name);
    const ModelSpec spec = WithGraph(bytes);
    const fs::path weights = folder_ / fs::path(name).filename();
    const auto write = [&](float weight) {
      const std::array<float, 4> all{weight, weight, weight, weight};
      std::ofstream(weights, std::ios::binary)
          .write(reinterpret_cast<const char*>(all.data()), sizeof all);
    };
    write(1);
    const ModelHandle model = Load(spec);
    write(3);
    fs::resize_file(weights, 1);
    const BatchResult result = RunBatch(*engine_, model, Row().Add<float>({1, 4}, {0, 0, 0, 0}));
    ASSERT_TRUE(result.status) << name << ": " << result.status.error().message;
    EXPECT_EQ(Values<float>(result.output->tensors[0].data)[0], 1) << name;
  }
}

TEST_F(GraphFiles, ALoadReadsAGraphThatHasTheSizeAndTimeOfTheOneBefore) {
  std::ifstream file(root_ / "tests/data/offset.onnx", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  ModelSpec spec = WithGraph(bytes);
  const auto written = fs::last_write_time(folder_ / "g.onnx");
  const auto serves = [&](std::uint64_t load) {
    spec.load = load;
    const BatchResult result =
        RunBatch(*engine_, Load(spec), Row().Add<float>({1, 4}, {1, 1, 1, 1}));
    return result.status ? Values<float>(result.output->tensors[0].data)[0] : -1;
  };
  EXPECT_EQ(serves(1), 12);
  const float two = 2;
  const float three = 3;
  const std::string before(reinterpret_cast<const char*>(&two), sizeof two);
  bytes.replace(bytes.find(before), before.size(), reinterpret_cast<const char*>(&three), 4);
  WithGraph(bytes);
  fs::last_write_time(folder_ / "g.onnx", written);
  EXPECT_EQ(serves(2), 13);
}

TEST_F(GraphFiles, AMissingEmptyTruncatedOrForeignFileIsAnErrorWithARemedy) {
  ModelSpec missing{.name = "m", .max_batch = 10};
  missing.exits = {{"1", folder_ / "none.onnx"}};
  const Error none = LoadError(missing);
  EXPECT_EQ(none.code, ErrorCode::kNotFound);
  EXPECT_THAT(none.message, AllOf(HasSubstr("none.onnx"), HasSubstr("config.pbtxt")));

  std::ifstream file(root_ / "models/ee_s/1/exit1.onnx", std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  ASSERT_GT(whole.size(), 1000u);
  for (const std::string& bytes :
       {std::string("\xff\x01\x02\x80"), whole.substr(0, whole.size() / 2)}) {
    const Error error = LoadError(WithGraph(bytes));
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message,
                AllOf(HasSubstr("g.onnx"), HasSubstr("damaged"), Not(HasSubstr("\n"))));
  }
}

// Whoever reads all of such a file before it is refused holds up the start of a server.
TEST_F(GraphFiles, AFileOfZerosIsRefusedByItsFirstBytes) {
  ModelSpec zeros = WithGraph("");
  fs::resize_file(folder_ / "g.onnx", std::uintmax_t{1} << 40);  // it takes no room
  EXPECT_THAT(LoadError(zeros).message, HasSubstr("it is zeros"));
}

TEST_F(GraphFiles, WhatALoadReadIsKnown) {
  const auto contents = [&](const std::string& weights) {
    fs::copy_file(root_ / "tests/data/weights.onnx", folder_ / "g.onnx",
                  fs::copy_options::overwrite_existing);
    std::ofstream(folder_ / "weights.bin", std::ios::binary) << weights;
    ModelSpec spec{.name = "m", .max_batch = 4};
    spec.exits = {{"1", folder_ / "g.onnx"}};
    EXPECT_TRUE(engine_->Load(spec, LaneSpec{}));
    return spec.contents;
  };
  const std::uint64_t before = contents("0123456789abcdef");
  EXPECT_NE(before, 0u);
  EXPECT_EQ(contents("0123456789abcdef"), before) << "other times and inodes are no other contents";
  EXPECT_NE(contents("0123456789abcdeg"), before);
}

TEST_F(GraphFiles, AnOperatorThatIsNotThereIsNotTakenForADamagedFile) {
  std::ifstream file(root_ / "tests/data/divide.onnx", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  bytes.replace(bytes.find("Div"), 3, "Dix");
  const Error error = LoadError(WithGraph(bytes));
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message, AllOf(HasSubstr("g.onnx"), HasSubstr("Dix"), HasSubstr("operators"),
                                   Not(HasSubstr("damaged"))));
}

// A remedy that does not fit its cause sends people the wrong way; where none is known, the
// library's words are all there is.
TEST_F(GraphFiles, EachCauseHasItsOwnRemedy) {
  std::ifstream file(root_ / "tests/data/weights.onnx", std::ios::binary);
  const std::string weights{std::istreambuf_iterator<char>(file), {}};
  const auto elsewhere = [&](std::string place) {
    std::string bytes = weights;
    bytes.replace(bytes.find("weights.bin"), 11, place.append(11 - place.size(), 'x'));
    return bytes;
  };
  struct Case {
    const char* about;
    std::string graph;
    std::string beside;  // in weights.bin; empty: there is none
    const char* remedy;
  };
  const std::vector<Case> cases = {
      {"no weights", weights, "", "the file that holds its weights is missing"},
      {"short weights", weights, "12345", "is shorter than the graph says: copy it again"},
      {"weights elsewhere", elsewhere("../../w"), "", "weights"},
      {"a pointer", "version https://git-lfs.github.com/spec/v1\n", "", "git lfs pull"},
      {"noise", "\xff\x01\x02\x80", "", "install or export it again"},
  };
  for (const Case& c : cases) {
    fs::remove(folder_ / "weights.bin");
    if (!c.beside.empty()) std::ofstream(folder_ / "weights.bin") << c.beside;
    const std::string message = LoadError(WithGraph(c.graph)).message;
    EXPECT_THAT(message, AllOf(HasSubstr("g.onnx"), HasSubstr(c.remedy))) << c.about;
    const bool noise = std::string(c.about) == "noise";
    EXPECT_EQ(message.find("damaged") != message.npos, noise) << message;
    EXPECT_EQ(message.find("operators"), message.npos) << message;
  }
}

}  // namespace
}  // namespace tactus
