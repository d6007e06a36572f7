// A window that closes for no reason refuses clients whose server has time; one that stays open
// lets work go on that is lost later.
#include "pipeline/admission_window.h"

#include <gtest/gtest.h>

namespace tactus {
namespace {

using End = AdmissionWindow::End;

// Enters as many as fit, at most `most`.
int Fill(AdmissionWindow& window, int most) {
  int entered = 0;
  while (entered < most && !window.IsFull()) entered = window.Enter();
  return entered;
}

TEST(AdmissionWindow, IsOpenUntilSomethingIsLostInVain) {
  AdmissionWindow window;
  ASSERT_EQ(Fill(window, 1000), 1000);
  for (int i = 1000; i > 0; --i) window.Leave(i, i % 2 == 0 ? End::kInTime : End::kNeither);
  EXPECT_EQ(Fill(window, 5000), 5000);
}

TEST(AdmissionWindow, ClosesWithLossesAndOpensAgain) {
  AdmissionWindow window;
  // Forty come at once again and again, and those beyond ten are lost.
  int admitted = 0;
  for (int round = 0; round < 50; ++round) {
    admitted = Fill(window, 40);
    for (int i = admitted; i > 0; --i) window.Leave(i, i > 10 ? End::kInVain : End::kInTime);
  }
  EXPECT_GE(admitted, 10);
  EXPECT_LE(admitted, 12);
  // Then all are in time: slowly at first, and faster the longer nothing is lost.
  int rounds = 0;
  for (; admitted < 40 && rounds < 100; ++rounds) {
    admitted = Fill(window, 40);
    for (int i = admitted; i > 0; --i) window.Leave(i, End::kInTime);
  }
  EXPECT_EQ(admitted, 40);
  EXPECT_GT(rounds, 5);
  EXPECT_LT(rounds, 25);
}

// A loss that has another reason than many at once must not shut others out.
TEST(AdmissionWindow, OneLossAmongFewLeavesRoomForTwiceAsMany) {
  AdmissionWindow window;
  const int entered = Fill(window, 8);
  window.Leave(entered, End::kInVain);
  EXPECT_EQ(Fill(window, 100), 16);  // 2 * 8 - 0.5, and the next whole one
}

TEST(AdmissionWindow, AlwaysAdmitsFour) {
  AdmissionWindow window;
  for (int i = 0; i < 1000; ++i) window.Leave(window.Enter(), End::kInVain);
  EXPECT_EQ(Fill(window, 50), 4);
}

}  // namespace
}  // namespace tactus
