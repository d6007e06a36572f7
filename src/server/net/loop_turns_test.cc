#include "server/net/loop_turns.h"

#include <string>

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(LoopTurns, RunsOnePieceBetweenTwoLooksAtWhatHasCome) {
  boost::asio::io_context loop(1);
  LoopTurns turns(loop);
  std::string ran;
  // What has come runs again and again, as sockets do that always have more.
  std::function<void()> comes = [&] {
    ran += '.';
    if (ran.size() < 20) boost::asio::post(loop, comes);
  };
  for (const char piece : {'1', '2', '3'}) turns.Add("a", [&ran, piece] { ran += piece; });
  boost::asio::post(loop, comes);
  boost::asio::post(loop, comes);
  loop.run();
  EXPECT_EQ(ran.substr(0, 9), "1..2..3..");
}

TEST(LoopTurns, ClientsTakeTurnsAndAPieceMayAddAnother) {
  boost::asio::io_context loop(1);
  LoopTurns turns(loop);
  std::string ran;
  turns.Add("a", [&] {
    ran += 'a';
    turns.Add("a", [&ran] { ran += 'A'; });
  });
  turns.Add("a", [&ran] { ran += 'b'; });
  turns.Add("c", [&ran] { ran += 'c'; });
  loop.run();
  EXPECT_EQ(ran, "acbA");
  turns.Add("a", [&] { turns.Add("a", [&ran] { ran += '!'; }); });
  loop.restart();
  loop.run();
  EXPECT_EQ(ran, "acbA!");
}

}  // namespace
}  // namespace tactus
