// libtactus_video.so, which reads video by libav. It is a library of its own, opened where it is
// installed: Debian's libav is under the GPL, and the program is not.
#pragma once

#include <memory>
#include <stop_token>

#include "stream/video_source.h"

namespace tactus {

inline constexpr char kVideoLibrary[] = "libtactus_video.so";

// What the library has under the name `tactus_video`. Both sides are of one version, so what they
// hand each other has one layout.
struct VideoEntry {
  const char* version;  // of the sources that it was made of
  Expected<std::unique_ptr<VideoSource>> (*open)(const SourceOptions&, std::stop_token);
};

}  // namespace tactus
