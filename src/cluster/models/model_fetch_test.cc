// Without these a node could load bytes that are not the model's, fetch for ever what it has, or
// lose what had come when the controller went away.
#include "cluster/models/model_fetch.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "base/whole_file.h"
#include "cluster/models/catalogue.h"
#include "platform/durable_file.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A controller: its repository as it was read and as it lies there now, in pieces of three bytes.
struct ScriptedSource final : BlobSource {
  explicit ScriptedSource(Catalogue offered) : catalogue(std::move(offered)) {}

  Status Read(const Digest& blob, std::uint64_t offset, const Take& take,
              const std::stop_token&) override {
    const Catalogue::Blob* found = catalogue.Find(blob);
    if (found == nullptr) return NotFound("nothing is " + blob.name());
    if (away > 0) {
      --away;
      return Fail(ErrorCode::kUnavailable, "nobody is there");
    }
    std::string bytes = found->text;
    if (!found->file.empty()) bytes = ReadWhole(found->file, "file").value_or("");
    if (!found->file.empty()) asked.push_back(found->file.filename().string());
    constexpr std::size_t kPiece = 3;
    for (std::size_t at = offset; at < bytes.size(); at += kPiece) {
      if (breaks_after && sent >= *breaks_after) {
        breaks_after.reset();
        return Fail(ErrorCode::kUnavailable, "the connection broke");
      }
      const std::string_view piece = std::string_view(bytes).substr(at, kPiece);
      sent += piece.size();
      if (Status taken = take(piece); !taken) return taken;
    }
    return {};
  }

  Catalogue catalogue;
  int away = 0;
  std::optional<std::size_t> breaks_after;
  std::size_t sent = 0;
  std::vector<std::string> asked;  // names of files
};

class ModelFetchTest : public ::testing::Test {
 protected:
  ModelFetchTest() {
    Put("controller/a/config.pbtxt", "name: \"a\"");
    Put("controller/a/1/model.onnx", "the same weights");
    Put("controller/b/config.pbtxt", "name: \"b\"");
    Put("controller/b/1/model.onnx", "the same weights");
    Put("controller/both/config.pbtxt", "a and b");
    Put("controller/empty/1/.gitkeep", "");
    Offer();
    Start();
  }

  void Put(const std::string& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path, std::ios::binary) << text;
  }
  // On the controller's disk, of both models.
  void Weights(const std::string& bytes) {
    Put("controller/a/1/model.onnx", bytes);
    Put("controller/b/1/model.onnx", bytes);
  }
  std::string Get(const fs::path& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Offer() {
    auto catalogue = Catalogue::Read(
        root / "controller", {"a", "b", "both", "empty", "none"}, [](const fs::path& folder) {
          return folder.filename() == "both" ? std::vector<std::string>{"a", "b"}
                                             : std::vector<std::string>{};
        });
    ASSERT_TRUE(catalogue) << catalogue.error().message;
    EXPECT_THAT(catalogue->missing(), ElementsAre("none"));
    source = std::make_unique<ScriptedSource>(*std::move(catalogue));
  }
  // A life of the agent.
  void Start(std::uint64_t most_bytes = 1'000'000) {
    auto opened =
        ModelStore::Open({.state = root / "state", .own = root / "own", .most_bytes = most_bytes});
    if (!fs::exists(root / "own")) {
      opened = ModelStore::Open({.state = root / "state", .own = {}, .most_bytes = most_bytes});
    }
    ASSERT_TRUE(opened) << opened.error().message;
    store.emplace(*std::move(opened));
  }
  Digest DigestOfModel(const std::string& model) const {
    return *Digest::Parse(source->catalogue.digests().at(model));
  }
  // As the agent does it.
  Status Place(const std::string& model, const std::set<std::string>& wanted = {},
               const std::stop_token& stop = {}) {
    ModelFetch fetch(
        *store, *source,
        {.node = "south",
         .came = {},
         .log = [this](const std::string& line) { said.push_back(line); },
         .busy = [this] { return busy; },
         .wait = [this](const std::stop_token&, std::chrono::milliseconds) { ++waits; }});
    std::set<Digest> kept;
    for (const std::string& each : wanted) kept.insert(DigestOfModel(each));
    const auto links = fetch.Fetch(model, DigestOfModel(model), kept, stop);
    if (!links) return std::unexpected(links.error());
    for (const auto& [name, folder] : *links) {
      if (Status linked = store->Link(name, folder); !linked) return linked;
    }
    return {};
  }
  std::string Placed(const std::string& path) const { return Get(store->repository() / path); }
  std::size_t Blobs() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(root / "state/cache/blobs"), {}));
  }

  const TemporaryFolder root;
  std::unique_ptr<ScriptedSource> source;
  std::optional<ModelStore> store;
  std::vector<std::string> said;
  int waits = 0;
  bool busy = false;
};

TEST_F(ModelFetchTest, AModelComesWholeAndFilesOfTwoModelsOnce) {
  ASSERT_TRUE(Place("a"));
  EXPECT_EQ(Placed("a/1/model.onnx"), "the same weights");
  EXPECT_EQ(Placed("a/config.pbtxt"), "name: \"a\"");
  EXPECT_THAT(source->asked, ElementsAre("model.onnx", "config.pbtxt"));
  source->asked.clear();
  ASSERT_TRUE(Place("b"));
  EXPECT_THAT(source->asked, ElementsAre("config.pbtxt")) << "the weights are here";
  EXPECT_EQ(Placed("b/1/model.onnx"), "the same weights");
  source->asked.clear();
  Start();
  ASSERT_TRUE(Place("a"));
  EXPECT_THAT(source->asked, IsEmpty()) << "also in a later life";
  ASSERT_TRUE(Place("empty"));
  EXPECT_TRUE(fs::exists(store->repository() / "empty/1/.gitkeep"));
  EXPECT_THAT(source->asked, IsEmpty()) << "nothing is to come of an empty file";
}

TEST_F(ModelFetchTest, WhatAModelNeedsComesWithIt) {
  ASSERT_TRUE(Place("both"));
  EXPECT_EQ(Placed("both/config.pbtxt"), "a and b");
  EXPECT_EQ(Placed("a/config.pbtxt"), "name: \"a\"");
  EXPECT_EQ(Placed("b/config.pbtxt"), "name: \"b\"");
}

TEST_F(ModelFetchTest, OtherBytesAreRefusedAndTheErrorNamesNodeFileAndBothDigests) {
  Weights("The same weights");  // as long as before
  const Status placed = Place("a");
  ASSERT_FALSE(placed);
  EXPECT_THAT(placed.error().message, AllOf(HasSubstr("node 'south'"), HasSubstr("model 'a'"),
                                            HasSubstr("file '1/model.onnx'"),
                                            HasSubstr(DigestOf("the same weights").name()),
                                            HasSubstr(DigestOf("The same weights").name())));
  EXPECT_FALSE(fs::exists(store->repository() / "a")) << "no worker finds it";
  Weights("the same weights");
  EXPECT_TRUE(Place("a")) << "nothing of it was kept";
}

TEST_F(ModelFetchTest, TooLongAndTooShortAreRefusedToo) {
  Weights("the same weights and some more");
  const Status longer = Place("a");
  ASSERT_FALSE(longer);
  EXPECT_THAT(longer.error().message, AllOf(HasSubstr("1/model.onnx"), HasSubstr("16 bytes")));
  Weights("the same");
  const Status shorter = Place("a");
  ASSERT_FALSE(shorter);
  EXPECT_THAT(shorter.error().message, HasSubstr(DigestOf("the same").name()));
}

TEST_F(ModelFetchTest, WhatBrokeOffGoesOnWhereItWas) {
  source->breaks_after = TextOf(*ReadManifest(root / "controller/a")).size() + 7;
  source->away = 0;
  ASSERT_TRUE(Place("a"));
  const std::size_t all = TextOf(*ReadManifest(root / "controller/a")).size() + 16 + 9;
  EXPECT_EQ(source->sent, all) << "nothing came twice";
  EXPECT_EQ(Placed("a/1/model.onnx"), "the same weights");
  EXPECT_EQ(waits, 1);
}

TEST_F(ModelFetchTest, WhatBrokeOffGoesOnInALaterLife) {
  const Digest weights = DigestOf("the same weights");
  std::ofstream(PartOf(store->BlobPath(weights)), std::ios::binary) << "the same w";
  ASSERT_TRUE(Place("a"));
  const std::size_t rest = TextOf(*ReadManifest(root / "controller/a")).size() + 6 + 9;
  EXPECT_EQ(source->sent, rest);
  EXPECT_EQ(Placed("a/1/model.onnx"), "the same weights");
}

// A part whose bytes a crash has lost must not be the model's end.
TEST_F(ModelFetchTest, APartOfOtherBytesIsFetchedAnew) {
  const Digest weights = DigestOf("the same weights");
  for (const std::string part : {"THE SAME W", "the same weights that are far too many"}) {
    std::ofstream(PartOf(store->BlobPath(weights)), std::ios::binary) << part;
    fs::remove(store->BlobPath(weights));
    ASSERT_TRUE(Place("a")) << part;
    EXPECT_EQ(Placed("a/1/model.onnx"), "the same weights");
  }
}

TEST_F(ModelFetchTest, AControllerThatIsAwayIsWaitedForAndSaysSoOnce) {
  source->away = 5;
  ASSERT_TRUE(Place("a"));
  EXPECT_EQ(waits, 5);
  ASSERT_EQ(said.size(), 2u) << "and what came";
  EXPECT_EQ(said[0], "models wait for the controller: nobody is there");
  source->away = 1'000'000;
  std::stop_source stop;
  stop.request_stop();
  const Status stopped = Place("b", {}, stop.get_token());
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
  busy = true;
  EXPECT_EQ(Place("b").error().code, ErrorCode::kUnavailable) << "others may be here already";
  EXPECT_TRUE(Place("a")) << "it is";
}

TEST_F(ModelFetchTest, WhatTheControllerDoesNotHaveIsAnError) {
  ModelFetch fetch(*store, *source,
                   {.node = "south", .came = {}, .log = {}, .busy = {}, .wait = {}});
  const auto links = fetch.Fetch("z", DigestOf("z"), {}, {});
  ASSERT_FALSE(links);
  EXPECT_EQ(links.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(links.error().message, HasSubstr(DigestOf("z").name()));
}

TEST_F(ModelFetchTest, AFullDiskSaysSo) {
  // Whatever is written there finds the disk full.
  fs::create_symlink("/dev/full", PartOf(store->BlobPath(DigestOf("the same weights"))));
  const Status placed = Place("a");
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(placed.error().message, AllOf(HasSubstr("No space left on device"),
                                            HasSubstr("make room there"), HasSubstr("south")));
}

TEST_F(ModelFetchTest, TheNodesOwnRepositoryIsTakenWhereItHoldsTheSameBytes) {
  Put("own/a/config.pbtxt", "name: \"a\"");
  Put("own/a/1/model.onnx", "the same weights");
  Put("own/b/config.pbtxt", "name: \"B\"");
  Put("own/b/1/model.onnx", "the same weights");
  Put("own/c/config.pbtxt", "name: \"c\"");
  Start();
  EXPECT_EQ(Placed("c/config.pbtxt"), "name: \"c\"");
  ASSERT_TRUE(Place("a"));
  EXPECT_THAT(source->asked, IsEmpty());
  ASSERT_TRUE(Place("b"));
  EXPECT_EQ(Placed("b/config.pbtxt"), "name: \"b\"") << "as the controller has it";
  Start();
  EXPECT_EQ(Placed("b/config.pbtxt"), "name: \"b\"") << "also in a later life";
  ASSERT_TRUE(store->LinkOwn("b"));
  EXPECT_EQ(Placed("b/config.pbtxt"), "name: \"B\"") << "a plan that says no digest";
}

TEST_F(ModelFetchTest, BytesThatRottedOnTheDiskAreFetchedAnew) {
  ASSERT_TRUE(Place("a"));
  const fs::path blob = store->BlobPath(DigestOf("the same weights"));
  fs::permissions(blob, fs::perms::owner_all);
  std::ofstream(blob, std::ios::binary) << "THE SAME WEIGHTS";
  Start();
  ASSERT_TRUE(Place("a"));
  EXPECT_EQ(Placed("a/1/model.onnx"), "the same weights");
}

TEST_F(ModelFetchTest, TheCacheStaysWithinItsBound) {
  ASSERT_TRUE(Place("a"));
  ASSERT_TRUE(Place("empty", {"a"}));
  EXPECT_EQ(Blobs(), 3u);
  Start(30);  // a's 25 bytes, and not 9 more
  const Status both = Place("b", {"a", "b"});
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error().message, AllOf(HasSubstr("model 'b'"), HasSubstr("--model-cache-mb")));
  EXPECT_EQ(Placed("a/config.pbtxt"), "name: \"a\"") << "a plan wants it";
  ASSERT_TRUE(Place("b", {"b"}));
  EXPECT_EQ(Placed("b/1/model.onnx"), "the same weights");
  EXPECT_FALSE(fs::exists(store->BlobPath(DigestOf("name: \"a\""))));
  EXPECT_EQ(Placed("a/config.pbtxt"), "") << "it has gone";
}

}  // namespace
}  // namespace tactus
