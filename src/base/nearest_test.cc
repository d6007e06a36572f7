// Without it a mistyped name is answered by another that nobody meant, or by none.
#include "base/nearest.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(Nearest, IsTheNameThatFewestLettersLeadTo) {
  const std::array<std::string, 5> known = {"fifo", "symphony", "rate_rps", "--policy", "lanes"};
  struct Case {
    const char* word;
    const char* meant;  // empty: none
  };
  for (const auto& [word, meant] :
       {Case{"fif", "fifo"}, Case{"fifoo", "fifo"}, Case{"foif", ""}, Case{"symphonny", "symphony"},
        Case{"rate", "rate_rps"}, Case{"--polcy", "--policy"}, Case{"zz", ""}, Case{"l", ""},
        Case{"magic", ""}, Case{"", ""}, Case{"lane", "lanes"}}) {
    const std::string name = meant;
    EXPECT_EQ(DidYouMean(word, known), name.empty() ? "" : " (did you mean '" + name + "'?)")
        << word;
  }
  EXPECT_EQ(DidYouMean(std::string(65, 'a'), std::array{std::string(66, 'a')}), "");
  EXPECT_EQ(DidYouMean("fifo", {}), "");
}

}  // namespace
}  // namespace tactus
