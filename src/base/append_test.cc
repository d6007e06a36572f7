#include "base/append.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(Append, PutsTextsAndNumbersInOrder) {
  std::string out = "a";
  const std::string text = "c";
  AppendAll(out, "b=", 1, text, std::string_view("d"), std::size_t{0}, "");
  EXPECT_EQ(out, "ab=1cd0");
}

TEST(Append, HasRoomForEveryNumber) {
  std::string out;
  AppendAll(out, std::numeric_limits<std::int64_t>::min(), " ",
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(out, "-9223372036854775808 18446744073709551615");
}

}  // namespace
}  // namespace tactus
