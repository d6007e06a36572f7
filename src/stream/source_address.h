// The address of a video source, as its owner writes it: a path, or the URL of a camera.
#pragma once

#include <string>
#include <string_view>

#include "base/expected.h"

namespace tactus {

// InvalidArgument where it is a URL of another kind than rtsp, rtsps, http and https. Looks at the
// text alone.
Status CheckSource(std::string_view source);

// As people may see it: what stands before the host, a name and a password, as ***.
std::string Shown(std::string_view source);

// A camera: it has its own pace, and is tried again when it is lost.
inline bool IsLive(std::string_view source) { return source.find("://") != source.npos; }

}  // namespace tactus
