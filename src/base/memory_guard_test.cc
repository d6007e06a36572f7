// Without this a size that a file states could end the server.
#include "base/memory_guard.h"

#include <vector>

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(WithMemory, IsAnErrorWhereThereIsNoneAndOtherwiseWhatTheWorkReturns) {
  const auto none = WithMemory("model 'm'", []() -> Expected<int> { throw std::bad_alloc(); });
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(none.error().message, "model 'm': there is no memory for it");
  const auto too_long = WithMemory("x", []() -> Status {
    std::vector<int> numbers;
    numbers.reserve(numbers.max_size() + 1);
    return {};
  });
  EXPECT_FALSE(too_long);
  EXPECT_EQ(WithMemory("x", []() -> Expected<int> { return 3; }).value(), 3);
}

}  // namespace
}  // namespace tactus
