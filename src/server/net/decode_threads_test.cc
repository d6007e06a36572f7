// Without turns a client that sends much would have all others wait until it is done.
#include "server/net/decode_threads.h"

#include <future>
#include <mutex>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(DecodeThreads, ClientsTakeTurns) {
  std::string order;
  {
    std::promise<void> begin;
    DecodeThreads threads(1);
    threads.Add("x", [&](std::size_t) { begin.get_future().wait(); });
    for (int i = 0; i < 4; ++i) threads.Add("much", [&](std::size_t) { order += 'm'; });
    threads.Add("little", [&](std::size_t) { order += 'l'; });
    begin.set_value();
  }  // runs what is left
  EXPECT_EQ(order, "mlmmm");
}

TEST(DecodeThreads, RunSideBySideUnderTheirNumbers) {
  std::mutex mutex;
  std::set<std::size_t> seen;
  {
    std::promise<void> both[2];
    DecodeThreads threads(2);
    for (int i = 0; i < 2; ++i) {
      threads.Add("a", [&, i](std::size_t thread) {
        both[i].set_value();
        both[1 - i].get_future().wait();  // only where the other runs too
        const std::scoped_lock lock(mutex);
        seen.insert(thread);
      });
    }
  }
  EXPECT_EQ(seen, (std::set<std::size_t>{0, 1}));
}

}  // namespace
}  // namespace tactus
