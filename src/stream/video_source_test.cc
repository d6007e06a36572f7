#include "stream/video_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus {
namespace {

// Without this, a program without the library would not say what it lacks, or one with it claim to
// lack it.
TEST(VideoSource, SaysWhatIsMissingWhereVideoCannotBeRead) {
  const auto source = OpenVideo({.source = "/nowhere/a.mp4"}, {});
  ASSERT_FALSE(source);
  const std::string& error = source.error().message;
  EXPECT_EQ(error.find("install the package tactus-video") == error.npos, CanReadVideo()) << error;
  EXPECT_EQ(source.error().code == ErrorCode::kUnimplemented, !CanReadVideo());
}

// Without this, whoever may read a stream's state would learn its camera's password.
TEST(VideoSource, IsShownWithoutNameAndPassword) {
  EXPECT_EQ(Shown("rtsp://user:pass@camera:554/1?a=b@c"), "rtsp://***@camera:554/1?a=b@c");
  EXPECT_EQ(Shown("rtsp://us@er:p@ss@camera"), "rtsp://***@camera");
  EXPECT_EQ(Shown("http://camera/a@b"), "http://camera/a@b");
  EXPECT_EQ(Shown("/videos/me@home.mp4"), "/videos/me@home.mp4");
}

// Without this, a stream from where nothing can be read would be tried again for ever.
TEST(VideoSource, HasAKindThatCanBeRead) {
  for (const char* good : {"a.mp4", "rtsp://c/1", "rtsps://c/1", "http://c/", "https://c/"}) {
    EXPECT_TRUE(CheckSource(good)) << good;
  }
  for (const char* bad : {"ftp://c/1", "file:///etc/passwd", "://", "RTSP ://c"}) {
    const Status known = CheckSource(bad);
    ASSERT_FALSE(known) << bad;
    EXPECT_EQ(known.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(VideoSource, UrlsAreLiveAndPathsAreNot) {
  for (const char* live : {"rtsp://camera/1", "http://camera/", "https://camera/a.mjpeg"}) {
    EXPECT_TRUE(IsLive(live)) << live;
  }
  for (const char* file : {"a.mp4", "/data/a.mkv", "c:d.avi", ""}) EXPECT_FALSE(IsLive(file));
}

}  // namespace
}  // namespace tactus
