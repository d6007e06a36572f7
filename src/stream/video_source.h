// Where frames come from: a file, a camera over RTSP, MJPEG over HTTP.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/expected.h"
#include "base/serving_time.h"
#include "stream/frame.h"
#include "stream/source_address.h"

namespace tactus {

struct SourceOptions {
  std::string source;             // a path, or an rtsp, rtsps, http or https URL
  Duration timeout = Seconds(5);  // without a byte for so long, it counts as lost
};

struct SourceFrame {
  std::unique_ptr<Picture> picture;  // null: it could not be decoded
  Duration at{};                     // by the source's own clock, from its first frame
};

// From one thread.
class VideoSource {
 public:
  virtual ~VideoSource() = default;
  // The next frame; blocks until there is one. Nothing: the end. Unavailable: it broke off, or was
  // silent for too long. Cancelled: a stop was asked for.
  virtual Expected<std::optional<SourceFrame>> Read() = 0;
};

// InvalidArgument where nothing can be read as video; Unavailable where it cannot be reached now.
// A stop ends it, and every Read, within a tenth of a second; but not while a host's name is looked
// up, which takes as long as the system's resolver does.
Expected<std::unique_ptr<VideoSource>> OpenVideo(const SourceOptions& options,
                                                 std::stop_token stop);

// Whether video can be read: the library that does (stream/video_library.h) is there, and of this
// version. Where it is not, OpenVideo says what to do about it.
bool CanReadVideo();

}  // namespace tactus
