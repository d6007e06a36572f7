// A window that closes for no reason refuses clients whose server has time; one that stays open
// lets work go on that is lost later.
#include "pipeline/admission_window.h"

#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

namespace tactus {
namespace {

using End = AdmissionWindow::End;
using Place = AdmissionWindow::Place;

// As many as fit, at most `most`.
std::vector<Place> Fill(AdmissionWindow& window, int most) {
  std::vector<Place> inside;
  while (static_cast<int>(inside.size()) < most && !window.IsFull()) {
    inside.push_back(window.Enter());
  }
  return inside;
}

// Callers come in rounds, each of an SLO's time, in which the machine answers `sustains` of them;
// how many of `callers` were admitted in each of the rounds.
std::vector<int> Rounds(AdmissionWindow& window, int callers, int sustains, int rounds) {
  std::vector<int> admitted;
  for (int round = 0; round < rounds; ++round) {
    const std::vector<Place> inside = Fill(window, callers);
    admitted.push_back(static_cast<int>(inside.size()));
    for (int i = 0; i < admitted.back(); ++i) {
      window.Leave(inside[static_cast<std::size_t>(i)], i < sustains ? End::kInTime : End::kInVain,
                   1);
    }
  }
  return admitted;
}

TEST(AdmissionWindow, IsOpenUntilSomethingIsLostInVain) {
  AdmissionWindow window;
  const std::vector<Place> inside = Fill(window, 1000);
  ASSERT_EQ(inside.size(), 1000u);
  for (std::size_t i = 0; i < inside.size(); ++i) {
    window.Leave(inside[i], i % 2 == 0 ? End::kInTime : End::kNeither, 1);
  }
  EXPECT_EQ(Fill(window, 5000).size(), 5000u);
}

// One round of losses is enough, however many came at once.
TEST(AdmissionWindow, ClosesInOneRoundToTwiceWhatTheMachineSustains) {
  for (const int callers : {12, 40, 1000}) {
    AdmissionWindow window;
    const std::vector<int> admitted = Rounds(window, callers, 10, 60);
    EXPECT_EQ(admitted[0], callers);
    EXPECT_LE(admitted[1], 20);
    for (std::size_t round = 1; round < admitted.size(); ++round) {
      EXPECT_GE(admitted[round], 10) << "round " << round << " of " << callers << " callers";
      if (round < 3) continue;
      EXPECT_LE(admitted[round], 12) << "round " << round << " of " << callers << " callers";
    }
  }
}

// What was lost while the machine stood still is soon forgotten.
TEST(AdmissionWindow, OpensFasterTheLongerNothingIsLost) {
  AdmissionWindow window;
  Rounds(window, 40, 0, 1);
  const std::vector<int> admitted = Rounds(window, 40, 40, 34);
  EXPECT_EQ(admitted.front(), 2);
  EXPECT_EQ(admitted.back(), 40) << "an SLO's time a round";
}

// Who was given up early saw only a part of what is answered in time.
TEST(AdmissionWindow, CountsForHowLongTheLostOneStayed) {
  AdmissionWindow window;
  const std::vector<Place> inside = Fill(window, 20);
  for (int i = 0; i < 5; ++i) window.Leave(inside[static_cast<std::size_t>(i)], End::kInTime, 0.5);
  for (int i = 5; i < 20; ++i) window.Leave(inside[static_cast<std::size_t>(i)], End::kInVain, 0.5);
  // Twice the 10 of a whole SLO, less a half for each of 15.
  EXPECT_EQ(Fill(window, 100).size(), 13u);
}

TEST(AdmissionWindow, AlwaysAdmitsTwo) {
  AdmissionWindow window;
  for (int i = 0; i < 1000; ++i) window.Leave(window.Enter(), End::kInVain, 1);
  EXPECT_EQ(Fill(window, 50).size(), 2u);
}

}  // namespace
}  // namespace tactus
