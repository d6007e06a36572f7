// Without it nobody downstream could tell a long queue from a slow model.
#include "server/kserve/server_timing.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(ServerTiming, SaysWhereTheTimeWentAndWhyACallWasRefused) {
  InferReply reply;
  reply.served = {.batch = 4, .queue_us = 1250, .execution_us = 3};
  EXPECT_EQ(ServerTiming(reply), "queue;dur=1.250, exec;dur=0.003");
  reply.served.emulated = true;
  EXPECT_EQ(ServerTiming(reply), R"(queue;dur=1.250, exec;dur=0.003;desc="emulated")");

  reply = {};
  reply.status = Fail(ErrorCode::kDeadlineExceeded, "too late");
  reply.served.outcome = Outcome::kExpired;
  EXPECT_EQ(ServerTiming(reply), R"(refused;desc="expired")");

  // It ran, and the engine failed.
  reply.status = Fail(ErrorCode::kInternal, "division by zero");
  reply.served = {.outcome = Outcome::kError, .batch = 1, .queue_us = 10, .execution_us = 20};
  EXPECT_EQ(ServerTiming(reply), R"(queue;dur=0.010, exec;dur=0.020, refused;desc="error")");
}

}  // namespace
}  // namespace tactus
