#include "serving/log_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/logger.h>

namespace tactus {
namespace {

using testing::HasSubstr;

// What a queue of these options writes of the same three lines.
std::string Written(const std::string& level, const std::string& format) {
  testing::internal::CaptureStderr();
  {
    const LogQueue logs(level, format);
    logs.log()->debug("detail");
    logs.log()->info("news");
    logs.log()->warn("a \"quoted\" \xff byte");
  }
  return testing::internal::GetCapturedStderr();
}

// Otherwise whoever collects the logs would stop at a line that is no JSON.
TEST(LogQueueTest, EachLineIsAnObjectWhateverAClientWrote) {
  const std::string text = Written("warning", "json");
  ASSERT_EQ(std::ranges::count(text, '\n'), 1) << text;
  const auto line = nlohmann::json::parse(text);
  EXPECT_EQ(line.at("level"), "warning");
  EXPECT_EQ(line.at("message"), "a \"quoted\" \xEF\xBF\xBD byte");
  EXPECT_THAT(line.at("time").get<std::string>(), testing::EndsWith("Z"));
}

TEST(LogQueueTest, TheLevelSaysWhatIsLeftOut) {
  EXPECT_EQ(Written("off", "text"), "");
  EXPECT_EQ(Written("error", "text"), "");
  const std::string info = Written("info", "text");
  EXPECT_THAT(info, HasSubstr(" info news\n"));
  EXPECT_THAT(info, testing::Not(HasSubstr("detail")));
  EXPECT_THAT(Written("debug", "text"), HasSubstr(" debug detail\n"));
}

}  // namespace
}  // namespace tactus
