// Models coming and going beside the traffic.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "runtime/harness_test.h"

namespace tactus {
namespace {

using ::testing::ElementsAre;
using testing::FlatProfile;
using testing::FloatModel;
using testing::Floats;
using testing::Harness;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace fs = std::filesystem;

// A folder of models in the test's own place; a version is a folder, its model a FloatModel.
class Repository : public ::testing::Test {
 protected:
  void Add(const std::string& model, int version) {
    fs::create_directories(root_ / model / std::to_string(version));
  }
  RepositoryOptions Options(ModelControl control) {
    RepositoryOptions options;
    options.folders = std::make_shared<ModelFolders>(std::vector{root_.path()});
    options.control = control;
    options.read = [](const fs::path& folder, std::int64_t version,
                      const std::string& config) -> Expected<ModelSpec> {
      if (fs::exists(folder / "broken")) return InvalidArgument("config.pbtxt:3: a mistake");
      ModelSpec spec = FloatModel(folder.filename().string());
      spec.version = version;
      spec.config = config;
      return spec;
    };
    return options;
  }
  static std::string StateOf(const Harness& h, const std::string& model) {
    for (const ModelState& state : h.runtime->Index()) {
      if (state.name == model) return state.state;
    }
    return "";
  }
  static testing::HarnessOptions Profiled() {
    testing::HarnessOptions options;
    options.profile = FlatProfile({"a", "b"}, 8, 0.001);
    return options;
  }

  const TemporaryFolder root_;
};

TEST_F(Repository, FoldersWithoutConfigurationOrVersionAreNoModels) {
  Add("a", 1);
  fs::create_directories(root_ / "scripts" / "v1");
  fs::create_directories(root_ / "b");
  std::ofstream(root_ / "b" / "config.pbtxt") << "";
  Harness h(Profiled());
  ASSERT_TRUE(h.runtime->Start(Options(ModelControl::kNone)));
  EXPECT_TRUE(h.runtime->Ready());
  std::vector<std::string> names;
  for (const ModelState& state : h.runtime->Index()) names.push_back(state.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
}

TEST_F(Repository, LeavesAnothersFoldersAloneAlsoWhenTheyChangeHands) {
  Add("a", 1);
  Add("b", 1);
  RepositoryOptions options = Options(ModelControl::kPoll);
  options.poll_interval = Millis(5);
  options.skips = [](const fs::path& folder) { return fs::exists(folder / "host"); };
  std::ofstream(root_ / "b" / "host") << "";
  Harness h(Profiled());
  ASSERT_TRUE(h.runtime->Start(options));
  EXPECT_THAT(h.runtime->Index(), SizeIs(1));
  EXPECT_TRUE(h.runtime->Ready()) << "another's model is not missing here";
  std::ofstream(root_ / "a" / "host") << "";
  fs::remove(root_ / "b" / "host");
  while (StateOf(h, "a") != "UNAVAILABLE" || StateOf(h, "b") != "READY") std::this_thread::yield();
}

TEST_F(Repository, ServesTheLatestVersionOfEachModel) {
  Add("a", 1);
  Add("a", 3);
  Add("b", 2);
  Harness h(Profiled());
  ASSERT_TRUE(h.runtime->Start(Options(ModelControl::kNone)));
  EXPECT_TRUE(h.runtime->Ready());
  EXPECT_EQ((*h.runtime->Find("a", -1))->version, 3);
  EXPECT_EQ(h.runtime->Find("a", 1).error().code, ErrorCode::kNotFound);
  EXPECT_THAT(Floats(h.replies.Await(h.Send("b", {1, 2}, {1, 2})).outputs[0]), ElementsAre(1, 2));
  EXPECT_EQ(h.runtime->Unload("a").error().code, ErrorCode::kUnavailable);
}

TEST_F(Repository, AModelThatCannotLoadDoesNotKeepTheOthersFromServing) {
  Add("a", 1);
  Add("b", 1);
  std::ofstream(root_ / "b" / "broken").put('x');
  Harness h(Profiled());
  ASSERT_TRUE(h.runtime->Start(Options(ModelControl::kNone)));
  EXPECT_FALSE(h.runtime->Ready());
  EXPECT_EQ(StateOf(h, "b"), "UNAVAILABLE");
  EXPECT_THAT(h.runtime->Find("b", -1).error().message, HasSubstr("config.pbtxt:3"));
  EXPECT_TRUE(h.replies.Await(h.Send("a", {1, 2}, {1, 2})).status);
}

TEST_F(Repository, ARepositoryThatIsNotThereIsAnError) {
  Harness h;
  RepositoryOptions options = Options(ModelControl::kNone);
  options.folders = std::make_shared<ModelFolders>(std::vector{root_ / "nowhere"});
  EXPECT_THAT(h.runtime->Start(options).error().message, HasSubstr("nowhere"));
}

TEST_F(Repository, LoadsAndUnloadsOnDemand) {
  Add("a", 1);
  Harness h(Profiled());
  ASSERT_TRUE(h.runtime->Start(Options(ModelControl::kExplicit)));
  EXPECT_EQ(StateOf(h, "a"), "UNAVAILABLE");
  EXPECT_TRUE(h.runtime->Ready());
  EXPECT_EQ(h.runtime->Load("../a", "").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(h.runtime->Load("c", "").error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(h.runtime->Load("a", "{}"));
  EXPECT_EQ(StateOf(h, "a"), "READY");
  EXPECT_EQ((*h.runtime->Find("a", -1))->config, "{}");
  ASSERT_TRUE(h.runtime->Unload("a"));
  EXPECT_EQ(StateOf(h, "a"), "UNAVAILABLE");
  EXPECT_EQ(h.runtime->Find("a", -1).error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(h.runtime->Ready());
  EXPECT_EQ(h.engine.loaded(), 0u);
  // Its id is free again: the next model takes it.
  ASSERT_TRUE(h.runtime->Serve(FloatModel("b")));
  EXPECT_THAT(h.runtime->served_models()->models, SizeIs(1));
}

TEST_F(Repository, OthersAreAnsweredWhileAModelLoads) {
  Add("slow", 1);
  Harness h(Profiled());
  h.engine.slow_model = "slow";
  h.engine.loads.Close();
  ASSERT_TRUE(h.runtime->Start(Options(ModelControl::kExplicit)));
  ASSERT_TRUE(h.runtime->Serve(FloatModel("a")));
  std::thread load([&] { EXPECT_TRUE(h.runtime->Load("slow", "")); });
  h.engine.loads.AwaitWaiting(1);
  EXPECT_EQ(StateOf(h, "slow"), "LOADING");
  EXPECT_FALSE(h.runtime->Ready());
  EXPECT_EQ(h.runtime->Find("slow", -1).error().code, ErrorCode::kUnavailable);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(h.replies.Await(h.Send("a", {1, 2}, {1, 2})).status);
  }
  ASSERT_TRUE(h.runtime->Serve(FloatModel("b")));  // nor does it keep others from loading
  h.engine.loads.Open();
  load.join();
  EXPECT_EQ(StateOf(h, "slow"), "READY");
}

// An operator reads in the log what was loaded, what a reload changed, and what went.
TEST_F(Repository, TellsOfModelsThatComeChangeAndGo) {
  Add("a", 1);
  Add("b", 1);
  testing::HarnessOptions with_news = Profiled();
  std::vector<std::string> news;
  with_news.news = [&](const std::string& line) { news.push_back(line); };
  Harness h(std::move(with_news));
  RepositoryOptions options = Options(ModelControl::kExplicit);
  options.load = {"b"};
  Duration slo = Millis(100);
  options.read = [read = options.read, &slo](const fs::path& folder, std::int64_t version,
                                             const std::string& config) {
    auto spec = read(folder, version, config);
    if (spec) spec->slo = slo;
    return spec;
  };
  ASSERT_TRUE(h.runtime->Start(options));
  EXPECT_THAT(news, IsEmpty()) << "the start has a line of its own";
  ASSERT_TRUE(h.runtime->Load("a", ""));
  slo = Millis(50);
  ASSERT_TRUE(h.runtime->Load("a", ""));
  ASSERT_TRUE(h.runtime->Load("a", ""));
  ASSERT_TRUE(h.runtime->Unload("a"));
  EXPECT_THAT(news, ElementsAre("model 'a' version 1: loaded: batches of at most 8, SLO 100 ms",
                                "model 'a' version 1: loaded anew: SLO 100 ms -> SLO 50 ms",
                                "model 'a' version 1: loaded anew: nothing has changed",
                                "model 'a' version 1: unloaded"));
}

TEST_F(Repository, UnloadFinishesWhatWaits) {
  Add("a", 1);
  Harness h(Profiled());
  ASSERT_TRUE(h.runtime->Start(Options(ModelControl::kExplicit)));
  ASSERT_TRUE(h.runtime->Load("a", ""));
  h.engine.batches.Close();
  std::vector<std::size_t> calls;
  for (int i = 0; i < 20; ++i) calls.push_back(h.Send("a", {1, 2}, {1, 2}));
  h.engine.batches.AwaitWaiting(1);
  std::thread unload([&] { EXPECT_TRUE(h.runtime->Unload("a")); });
  while (h.runtime->Find("a", -1)) std::this_thread::yield();
  EXPECT_EQ(StateOf(h, "a"), "UNLOADING");
  h.engine.batches.Open();
  unload.join();
  for (const std::size_t call : calls) EXPECT_TRUE(h.replies.Await(call).status);
  EXPECT_EQ(h.engine.loaded(), 0u);
}

TEST_F(Repository, UnloadRefusesWhatOutlastsTheGrace) {
  Add("a", 1);
  testing::HarnessOptions options = Profiled();
  options.runtime.unload_grace = Duration{};
  Harness h(std::move(options));
  ASSERT_TRUE(h.runtime->Start(Options(ModelControl::kExplicit)));
  ASSERT_TRUE(h.runtime->Load("a", ""));
  h.engine.batches.Close();
  const std::size_t running = h.Send("a", {1, 2}, {1, 2});
  h.engine.batches.AwaitWaiting(1);
  const std::size_t waiting = h.Send("a", {1, 2}, {1, 2});
  std::thread unload([&] { EXPECT_TRUE(h.runtime->Unload("a")); });
  EXPECT_EQ(h.replies.Await(waiting).status.error().code, ErrorCode::kUnavailable);
  h.engine.batches.Open();
  unload.join();
  EXPECT_TRUE(h.replies.Await(running).status);
}

TEST_F(Repository, ReplacingAModelUnderTrafficLosesNothing) {
  Add("a", 1);
  Harness h(Profiled());
  ASSERT_TRUE(h.runtime->Start(Options(ModelControl::kExplicit)));
  ASSERT_TRUE(h.runtime->Load("a", ""));
  std::atomic<bool> stop{false};
  std::atomic<int> sent{0};
  std::thread traffic([&] {
    while (!stop) {
      h.Send("a", {1, 2}, {1, 2});
      ++sent;
      if (sent % 64 == 0) h.replies.AwaitAll();
    }
  });
  for (int version = 2; version <= 6; ++version) {
    const int before = sent;
    while (sent < before + 20) std::this_thread::yield();
    Add("a", version);
    ASSERT_TRUE(h.runtime->Load("a", ""));
    EXPECT_EQ((*h.runtime->Find("a", -1))->version, version);
  }
  stop = true;
  traffic.join();
  h.replies.AwaitAll();
  for (std::size_t i = 0; i < h.replies.size(); ++i) {
    const InferReply& reply = h.replies.Await(i);
    // Between Find and Infer a model may have been replaced; the client is told to try again.
    if (!reply.status) {
      EXPECT_EQ(reply.status.error().message, "the model was unloaded just now");
    }
    EXPECT_EQ(h.replies.times(i), 1u);
  }
  EXPECT_EQ(h.engine.loaded(), 1u);
}

// Without this, a call between Find and Infer was refused with each reload.
TEST_F(Repository, ACallFindsWhatServesInPlaceOfItsModel) {
  Add("a", 1);
  Harness h(Profiled());
  RepositoryOptions options = Options(ModelControl::kExplicit);
  options.load = {"a"};
  ASSERT_TRUE(h.runtime->Start(options));
  const auto before = *h.runtime->Find("a", -1);
  ASSERT_TRUE(h.runtime->Load("a", ""));
  ASSERT_NE(before, *h.runtime->Find("a", -1));
  const InferReply& reply = h.replies.Await(h.SendTo(before, {1, 2}, {1, 2}));
  EXPECT_TRUE(reply.status) << reply.status.error().message;
  EXPECT_EQ(reply.model, *h.runtime->Find("a", -1));
}

TEST_F(Repository, PollingFindsNewBrokenAndRemovedModels) {
  Add("a", 1);
  RepositoryOptions options = Options(ModelControl::kPoll);
  options.poll_interval = Millis(1);
  Harness h(Profiled());
  ASSERT_TRUE(h.runtime->Start(options));
  Add("b", 1);
  while (!h.runtime->Find("b", -1)) std::this_thread::yield();
  Add("a", 2);
  while ((*h.runtime->Find("a", -1))->version != 2) std::this_thread::yield();
  fs::remove_all(root_ / "b");
  while (h.runtime->Find("b", -1)) std::this_thread::yield();
  EXPECT_TRUE(h.replies.Await(h.Send("a", {1, 2}, {1, 2})).status);
}

TEST_F(Repository, PollingFindsAFolderThatComesBackAsItWas) {
  Add("a", 1);
  Add("b", 1);
  RepositoryOptions options = Options(ModelControl::kPoll);
  options.poll_interval = Millis(1);
  Harness h(Profiled());
  ASSERT_TRUE(h.runtime->Start(options));
  const TemporaryFolder aside;
  fs::rename(root_ / "b", aside / "b");
  while (h.runtime->Find("b", -1)) std::this_thread::yield();
  fs::rename(aside / "b", root_ / "b");
  while (!h.runtime->Find("b", -1)) std::this_thread::yield();
}

TEST_F(Repository, PollingFindsAFileOfAnotherSizeAndTheSameAge) {
  Add("a", 1);
  const fs::path file = root_ / "a" / "1" / "weights";
  std::ofstream(file) << "1";
  const auto written = fs::last_write_time(file);
  const auto folder_written = fs::last_write_time(root_ / "a");
  std::atomic<int> reads = 0;
  RepositoryOptions options = Options(ModelControl::kPoll);
  options.poll_interval = Millis(1);
  options.read = [&reads, read = options.read](const fs::path& folder, std::int64_t version,
                                               const std::string& config) {
    ++reads;
    return read(folder, version, config);
  };
  Harness h(Profiled());
  ASSERT_TRUE(h.runtime->Start(options));
  EXPECT_EQ(reads, 1);
  std::ofstream(file, std::ios::app) << "2";
  fs::last_write_time(file, written);
  fs::last_write_time(root_ / "a", folder_written);
  while (reads < 2) std::this_thread::yield();
}

TEST(MeasuredModel, ThatThereIsNoMemoryForIsAnErrorOfItsLoad) {
  Harness h{testing::HarnessOptions{}};
  h.runtime->Start();
  h.engine.no_memory = true;
  const Status served = h.runtime->Serve(FloatModel("large"));
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(h.engine.loaded(), 0u);
  h.engine.no_memory = false;
  EXPECT_TRUE(h.runtime->Serve(FloatModel("m")));
}

TEST_F(Repository, AModelThatIsAskedForAndIsNotThereIsNotReady) {
  Add("a", 1);
  RepositoryOptions options = Options(ModelControl::kExplicit);
  options.load = {"a", "b"};
  Harness h(Profiled());
  ASSERT_TRUE(h.runtime->Start(options));
  EXPECT_FALSE(h.runtime->Ready());
  EXPECT_EQ(StateOf(h, "b"), "UNAVAILABLE");
  Add("b", 1);
  EXPECT_TRUE(h.runtime->Load("b", "").has_value());
  EXPECT_TRUE(h.runtime->Ready());
}

TEST_F(Repository, WhereReadinessIsNotStrictAMissingModelDoesNotMatter) {
  RepositoryOptions options = Options(ModelControl::kExplicit);
  options.load = {"b"};
  testing::HarnessOptions given = Profiled();
  given.runtime.strict_readiness = false;
  Harness h(std::move(given));
  ASSERT_TRUE(h.runtime->Start(options));
  EXPECT_TRUE(h.runtime->Ready());
  EXPECT_EQ(StateOf(h, "b"), "UNAVAILABLE");
  h.runtime->Stop(Duration{});
  EXPECT_FALSE(h.runtime->Ready());
}

// A version that cannot be loaded must not cost the one that it was to replace, nor the server its
// place behind a balancer.
TEST_F(Repository, AModelKeepsWhatServesWhereItsNewVersionDoesNot) {
  Add("a", 1);
  Harness h(Profiled());
  ASSERT_TRUE(h.runtime->Start(Options(ModelControl::kExplicit)));
  ASSERT_TRUE(h.runtime->Load("a", "").has_value());
  Add("a", 2);
  std::ofstream(root_ / "a" / "broken") << "";
  EXPECT_FALSE(h.runtime->Load("a", "").has_value());
  ASSERT_TRUE(h.runtime->Find("a", -1).has_value());
  EXPECT_EQ((*h.runtime->Find("a", -1))->version, 1);
  EXPECT_EQ(h.runtime->Find("a", 2).error().message,
            "Request for unknown model: 'a' version 2 is not at ready state: config.pbtxt:3: a "
            "mistake");
  EXPECT_TRUE(h.runtime->Ready());
  fs::remove(root_ / "a" / "broken");
  ASSERT_TRUE(h.runtime->Load("a", "").has_value());
  EXPECT_EQ((*h.runtime->Find("a", -1))->version, 2);
  EXPECT_FALSE(h.runtime->Find("a", 1).has_value());
  EXPECT_TRUE(h.runtime->Ready());
}

TEST_F(Repository, AnOverrideHoldsUntilTheModelIsUnloaded) {
  Add("a", 1);
  Harness h(Profiled());
  ASSERT_TRUE(h.runtime->Start(Options(ModelControl::kExplicit)));
  ASSERT_TRUE(h.runtime->Load("a", "{1}").has_value());
  ASSERT_TRUE(h.runtime->Load("a", "").has_value());
  EXPECT_EQ((*h.runtime->Find("a", -1))->config, "{1}");
  ASSERT_TRUE(h.runtime->Load("a", "{2}").has_value());
  EXPECT_EQ((*h.runtime->Find("a", -1))->config, "{2}");
  ASSERT_TRUE(h.runtime->Unload("a").has_value());
  ASSERT_TRUE(h.runtime->Load("a", "").has_value());
  EXPECT_EQ((*h.runtime->Find("a", -1))->config, "");
}

TEST_F(Repository, AFolderWhoseNameIsNotUtf8IsNoModel) {
  Add("a", 1);
  Add("b\xFF", 1);
  Add("c\xED\xA0\x80", 1);
  Add("h\xC3\xA4", 1);
  EXPECT_EQ(*ListModels(root_.path()), (std::vector<std::string>{"a", "h\xC3\xA4"}));
  const auto said = ModelFolders({root_.path()}).Overlooked();
  ASSERT_EQ(said.size(), 2u);
  EXPECT_THAT(said[0], HasSubstr("b\\xff\": is not served, as the folder's name is not UTF-8"));
}

// Somebody who copies such a folder into a running server would look for the reason in vain.
TEST_F(Repository, AFolderWhoseNameIsNotUtf8IsLoggedEachTimeThatItComes) {
  Add("a", 1);
  Add("b\xFF", 1);
  testing::HarnessOptions with_log = Profiled();
  std::mutex mutex;
  std::map<std::string, int> said;
  with_log.log = [&](const std::string& line) {
    if (!line.contains("not UTF-8")) return;
    const std::lock_guard lock(mutex);
    ++said[line.substr(0, line.find(": is not"))];
  };
  Harness h(std::move(with_log));
  const RepositoryOptions options = Options(ModelControl::kExplicit);
  EXPECT_THAT(options.folders->Overlooked(), ::testing::SizeIs(1));
  ASSERT_TRUE(h.runtime->Start(options));
  EXPECT_TRUE(said.empty()) << "who asked what is overlooked has said it";
  const auto times = [&](const std::string& end) {
    (void)h.runtime->Index();
    int sum = 0;
    for (const auto& [folder, count] : said) sum += folder.ends_with(end) ? count : 0;
    return sum;
  };
  Add("c\xFF", 1);
  EXPECT_EQ(times("c\\xff\""), 1);
  EXPECT_EQ(times("c\\xff\""), 1);
  fs::remove_all(root_ / "c\xFF");
  EXPECT_EQ(times("c\\xff\""), 1);
  Add("c\xFF", 1);
  EXPECT_EQ(times("c\\xff\""), 2);
  EXPECT_EQ(times("b\\xff\""), 0);
}

TEST_F(Repository, GraphsOutsideAVersionFolderArePointedOut) {
  Add("a", 1);
  for (const char* const file : {"bare/model.onnx", "named/v1/model.onnx", "zero/0/model.onnx",
                                 "scripts/train.py", "nested/model/1/model.onnx"}) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << "?";
  }
  const auto said = ModelFolders({root_.path()}).Overlooked();
  ASSERT_EQ(said.size(), 3u);
  EXPECT_THAT(said[0], HasSubstr("bare: is not served"));
  EXPECT_THAT(said[0], HasSubstr("put the model's files into " + (root_ / "bare/1").string()));
  EXPECT_THAT(said[1], HasSubstr("named: is not served"));
  EXPECT_THAT(said[2], HasSubstr("zero: is not served"));
}

TEST_F(Repository, ConfigurationsThatNobodyReadsArePointedOut) {
  for (const char* const file : {"a/1/config.pbtxt", "b/config.pbtxt.txt", "c/config.pbtxt.old",
                                 "d/1/config.json", "e/Config.PBTXT"}) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << "?";
  }
  fs::create_directories(root_ / "e/1");
  fs::create_directories(root_ / "b/1");
  fs::create_directories(root_ / "c/1");
  std::ofstream(root_ / "c/config.pbtxt") << "";
  const auto said = ModelFolders({root_.path()}).Overlooked();
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[0],
            fmt::format("{}: is not read; move it to {}", (root_ / "a/1/config.pbtxt").string(),
                        (root_ / "a/config.pbtxt").string()));
  EXPECT_EQ(said[1],
            fmt::format("{}: is not read; move it to {}", (root_ / "b/config.pbtxt.txt").string(),
                        (root_ / "b/config.pbtxt").string()));
  EXPECT_THAT(said[2], HasSubstr("Config.PBTXT: is not read; move it to"));
}

TEST_F(Repository, ModelsBesideFoldersAndOfOtherFrameworksArePointedOut) {
  Add("a", 1);
  for (const char* const file : {"b.onnx", "c.pt", "model.onnx", "d/model.pt", "notes.txt",
                                 "e/weights/checkpoint.pt", "a/model.pt"}) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << "?";
  }
  const auto said = ModelFolders({root_.path()}).Overlooked();
  ASSERT_EQ(said.size(), 4u);
  EXPECT_THAT(said[0], HasSubstr("b.onnx: is not served, as it lies in no folder of its own: put "
                                 "it at " +
                                 (root_ / "b/1/model.onnx").string()));
  EXPECT_THAT(said[1], HasSubstr("c.pt: is not served, as it is no ONNX graph: export the model to "
                                 "ONNX and put the graph at " +
                                 (root_ / "c/1/model.onnx").string()));
  EXPECT_THAT(said[2], HasSubstr("/d: is not served"));
  EXPECT_THAT(said[2], HasSubstr("model.pt is no ONNX graph: export the model to ONNX and put the "
                                 "graph at " +
                                 (root_ / "d/1/model.onnx").string()));
  EXPECT_THAT(said[3], HasSubstr((root_ / "NAME/1/model.onnx").string()));
}

TEST_F(Repository, AModelThatRejectsItsSampleServesUnprofiled) {
  Add("a", 1);
  Harness h;
  h.engine.verdict = [](const std::string&, const BatchJob& job) -> Status {
    if (job.id.value() < (std::uint64_t{1} << 63)) return {};
    return InvalidArgument("this is no sample");
  };
  ASSERT_TRUE(h.runtime->Start(Options(ModelControl::kNone)));
  EXPECT_TRUE(h.runtime->Ready());
  EXPECT_THAT(Floats(h.replies.Await(h.Send("a", {1, 2}, {1, 2})).outputs[0]), ElementsAre(1, 2));
}

}  // namespace
}  // namespace tactus
