// A server that aborts where an answer finds no memory loses all calls and not one.
#include "platform/memory_reserve.h"

#include <new>

#include <gtest/gtest.h>

namespace tactus {
namespace {

TEST(MemoryReserve, IsGivenUpOnceAndHeldAgain) {
  EXPECT_FALSE(MemoryReserve::Spent());
  const std::new_handler before = std::get_new_handler();
  MemoryReserve::Hold();
  const std::new_handler gives_up = std::get_new_handler();
  ASSERT_NE(gives_up, before);
  for (int i = 0; i < 2; ++i) {
    EXPECT_NO_THROW(gives_up());
    EXPECT_THROW(gives_up(), std::bad_alloc) << "nothing is held any more";
    EXPECT_FALSE(MemoryReserve::Spent()) << "there is room again";
  }
  std::set_new_handler(before);
}

}  // namespace
}  // namespace tactus
