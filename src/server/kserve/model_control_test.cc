#include "server/kserve/model_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_TRUE(LoadOf(service, "m", ""));
  service.status = NotFound("no such folder");
  EXPECT_EQ(LoadOf(service, "m", "{}").error().message,
            "failed to load 'm', failed to poll from model repository: no such folder");
  EXPECT_EQ(LoadOf(service, "here", "").error().message,
            "load failed for model 'here': no such folder");
  service.status = InvalidArgument("m/config.pbtxt:3:5: no");
  EXPECT_EQ(LoadOf(service, "m", "").error().message,
            "load failed for model 'm': m/config.pbtxt:3:5: no");
  EXPECT_THAT(LoadOf(service, "m", "{}").error().message, StartsWith("failed to load 'm' with"));
  EXPECT_EQ(LoadOf(service, "m", "{}").error().code, ErrorCode::kInvalidArgument);
  service.status = Fail(ErrorCode::kUnavailable, "not now");
  EXPECT_EQ(LoadOf(service, "m", "").error().message, "not now");
}

TEST(UnloadOf, AnUnknownModelCountsAsUnloadedForStrictTritonAlone) {
  ControlledService service;
  service.status = NotFound("nobody");
  EXPECT_EQ(UnloadOf(service, "m", false, false).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(UnloadOf(service, "m", false, true));
  EXPECT_EQ(service.with_steps, "");
  service.status = Internal("stuck");
  EXPECT_EQ(UnloadOf(service, "m", true, true).error().message, "stuck");
  EXPECT_EQ(service.with_steps, "m");
}

}  // namespace
}  // namespace tactus
