#include "engines/isolated/sharing_famine.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace tactus {
namespace {

// Without this a server said that it was ready while each call was refused for want of descriptors.
TEST(SharingFamine, LastsWhileThereAreNoDescriptors) {
  EXPECT_FALSE(SharingFamine::Lasts());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(0);
  ASSERT_GE(next, 0);
  close(next);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(next);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool unnoted = SharingFamine::Lasts();
  SharingFamine::Note(65536, nullptr);
  const bool noted = SharingFamine::Lasts();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(unnoted) << "nobody needs any";
  EXPECT_TRUE(noted);
  EXPECT_FALSE(SharingFamine::Lasts());
}

}  // namespace
}  // namespace tactus
