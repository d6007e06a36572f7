// Without this a stop could not do two things at a time where no thread can be made.
#include "platform/ready_thread.h"

#include <thread>

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(ReadyThread, DoesItsWorkOnAnotherThreadAndIsWaitedFor) {
  std::thread::id where;
  {
    ReadyThread thread;
    thread.Start([&] { where = std::this_thread::get_id(); });
  }
  EXPECT_NE(where, std::thread::id());
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST(ReadyThread, EndsWithoutWork) { const ReadyThread thread; }

}  // namespace
}  // namespace tactus
