#include "server/kserve/model_control.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "base/whole_file.h"
#include "service/plain_service_test.h"

namespace tactus {
namespace {

using testing::StartsWith;

// Ends every load and unload as the test says.
class ControlledService : public PlainService {
 public:
  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view, std::int64_t) const override {
    return NotFound("none");
  }
  CallId Infer(InferCall&&) override { return 0; }
  std::vector<ModelState> Index() const override { return {{.name = "here", .version = 1}}; }
  Status Load(const std::string&, const std::string&) override { return status; }
  Status Unload(const std::string&) override { return status; }
  Status UnloadWithSteps(const std::string& model) override {
    with_steps = model;
    return status;
  }

  Status status;
  std::string with_steps;
};

// Triton's example clients look for these words, and for no code.
TEST(LoadOf, SaysInTritonsWordsWhatFailed) {
  ControlledService service;
  EXPECT_TRUE(LoadOf(service, nullptr, "m", {}));
  service.status = NotFound("no such folder");
  EXPECT_EQ(LoadOf(service, nullptr, "m", {.config = "{}"}).error().message,
            "failed to load 'm', failed to poll from model repository: no such folder");
  EXPECT_EQ(LoadOf(service, nullptr, "here", {}).error().message,
            "load failed for model 'here': no such folder");
  service.status = InvalidArgument("m/config.pbtxt:3:5: no");
  EXPECT_EQ(LoadOf(service, nullptr, "m", {}).error().message,
            "load failed for model 'm': m/config.pbtxt:3:5: no");
  EXPECT_THAT(LoadOf(service, nullptr, "m", {.config = "{}"}).error().message,
              StartsWith("failed to load 'm' with the configuration given (instead of all of"));
  EXPECT_EQ(LoadOf(service, nullptr, "m", {.config = "{}"}).error().code,
            ErrorCode::kInvalidArgument);
  service.status = Fail(ErrorCode::kUnavailable, "not now");
  EXPECT_EQ(LoadOf(service, nullptr, "m", {}).error().message, "not now");
}

TEST(LoadOf, KeepsTheFilesOfALoadThatSucceedsUntilTheModelIsUnloaded) {
  ControlledService service;
  const TemporaryFolder repository;
  std::filesystem::create_directories(repository / "m" / "1");
  ModelFolders folders({repository.path()});
  const auto text = [&](const char* path) { return ReadWhole(folders.Of("m") / path, "file"); };
  const auto sent = [](const char* graph) {
    return LoadOverride{.files = {{"1/model.onnx", graph}, {"labels.txt", "a"}}};
  };
  EXPECT_EQ(LoadOf(service, nullptr, "m", sent("old")).error().code, ErrorCode::kUnimplemented);
  ASSERT_TRUE(LoadOf(service, &folders, "m", sent("old")));
  EXPECT_EQ(text("1/model.onnx"), "old");
  EXPECT_EQ(text("labels.txt"), "a");
  ASSERT_TRUE(folders.Check("m"));
  const std::filesystem::path first = folders.Of("m");

  service.status = InvalidArgument("no graph");
  EXPECT_EQ(LoadOf(service, &folders, "m", sent("bad")).error().message,
            "failed to load 'm' with the files given: no graph");
  EXPECT_EQ(text("1/model.onnx"), "old");
  service.status = {};
  ASSERT_TRUE(LoadOf(service, &folders, "m", sent("new")));
  EXPECT_EQ(text("1/model.onnx"), "new");
  EXPECT_FALSE(std::filesystem::exists(first));
  ASSERT_TRUE(LoadOf(service, &folders, "m", {}));
  EXPECT_EQ(text("1/model.onnx"), "new");

  ASSERT_TRUE(UnloadOf(service, &folders, "m", false, false));
  EXPECT_EQ(folders.Of("m"), repository / "m");
}

TEST(LoadOf, WritesNothingOutsideOfTheModelsFolder) {
  ControlledService service;
  ModelFolders folders({});
  for (const char* path : {"", "/etc/x", "../x", "1/../../x", "1//x", "1/.x", "1/", "a\xFF"}) {
    const Status loaded = LoadOf(service, &folders, "m", {.files = {{path, "x"}}});
    ASSERT_FALSE(loaded) << path;
    EXPECT_EQ(loaded.error().code, ErrorCode::kInvalidArgument) << path;
  }
  EXPECT_FALSE(LoadOf(service, &folders, "../m", {.files = {{"1/x", "x"}}}));
  EXPECT_TRUE(folders.WithFiles().empty());
}

TEST(UnloadOf, AnUnknownModelCountsAsUnloadedForStrictTritonAlone) {
  ControlledService service;
  service.status = NotFound("nobody");
  EXPECT_EQ(UnloadOf(service, nullptr, "m", false, false).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(UnloadOf(service, nullptr, "m", false, true));
  EXPECT_EQ(service.with_steps, "");
  service.status = Internal("stuck");
  EXPECT_EQ(UnloadOf(service, nullptr, "m", true, true).error().message, "stuck");
  EXPECT_EQ(service.with_steps, "m");
}

}  // namespace
}  // namespace tactus
