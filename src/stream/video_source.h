// Where frames come from: a file, a camera over RTSP, MJPEG over HTTP.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "base/serving_time.h"
#include "stream/frame.h"

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

// InvalidArgument where it is the URL of another kind than those above. Looks at the text alone.
Status CheckSource(std::string_view source);

// InvalidArgument where nothing can be read as video; Unavailable where it cannot be reached now.
// A stop ends it, and every Read, within a tenth of a second; but not while a host's name is looked
// up, which takes as long as the system's resolver does.
Expected<std::unique_ptr<VideoSource>> OpenVideo(const SourceOptions& options,
                                                 std::stop_token stop);

// Whether this build can read video; where it cannot, OpenVideo says what to do about it.
bool CanReadVideo();

// As people may see it: what stands before the host, a name and a password, as ***.
std::string Shown(std::string_view source);

// A camera: it has its own pace, and is tried again when it is lost.
inline bool IsLive(std::string_view source) { return source.find("://") != source.npos; }

}  // namespace tactus
