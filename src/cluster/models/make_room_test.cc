// Without these a cache could grow without bound, or a model go that a plan wants.
#include "cluster/models/make_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Digest kA = DigestOf("a"), kB = DigestOf("b"), kC = DigestOf("c");
const Digest kX = DigestOf("x"), kY = DigestOf("y"), kShared = DigestOf("shared");

// A and B have a file of their own and one that both have; nothing is wanted.
CacheContent Two() {
  return {.models = {{.manifest = kA, .used = 1, .blobs = {kX, kShared}},
                     {.manifest = kB, .used = 2, .blobs = {kY, kShared}}},
          .blobs = {{kX, 10}, {kY, 20}, {kShared, 30}},
          .coming = {},
          .more = 0};
}

TEST(MakeRoom, WhatFitsStays) {
  CacheContent content = Two();
  content.more = 40;
  const auto gone = MakeRoom(content, 100);
  ASSERT_TRUE(gone);
  EXPECT_THAT(gone->models, IsEmpty());
  EXPECT_THAT(gone->blobs, IsEmpty());
}

TEST(MakeRoom, TheModelGoesThatWasNotUsedForLongest) {
  CacheContent content = Two();
  content.more = 45;
  auto gone = MakeRoom(content, 100);
  ASSERT_TRUE(gone);
  EXPECT_THAT(gone->models, ElementsAre(kA));
  EXPECT_THAT(gone->blobs, ElementsAre(kX)) << "B has the other one too";
  content.models[0].used = 3;
  gone = MakeRoom(content, 100);
  EXPECT_THAT(gone->models, ElementsAre(kB));
  content.more = 100;
  gone = MakeRoom(content, 100);
  EXPECT_THAT(gone->models, ElementsAre(kB, kA));
  EXPECT_EQ(gone->blobs.size(), 3u);
}

TEST(MakeRoom, WhatAPlanWantsAndWhatComesStays) {
  CacheContent content = Two();
  content.models[0].wanted = true;
  content.coming = {kY};
  content.more = 41;
  const auto gone = MakeRoom(content, 100);
  ASSERT_FALSE(gone) << "B goes, but nothing of it: Y is to come, and A has the other";
  EXPECT_EQ(gone.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(gone.error().message, HasSubstr("--model-cache-mb"));
  content.more = 40;
  EXPECT_TRUE(MakeRoom(content, 100));
}

TEST(MakeRoom, WhatBelongsToNoModelGoesFirst) {
  CacheContent content = Two();
  content.blobs[kC] = 5;
  content.more = 40;
  const auto gone = MakeRoom(content, 100);
  ASSERT_TRUE(gone);
  EXPECT_THAT(gone->blobs, ElementsAre(kC));
  EXPECT_THAT(gone->models, IsEmpty());
}

}  // namespace
}  // namespace tactus
