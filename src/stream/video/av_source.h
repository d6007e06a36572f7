// Video sources over libav.
#pragma once

#include <memory>
#include <stop_token>

#include "stream/video_source.h"

namespace tactus {

// OpenVideo, where libav was there when the server was built.
Expected<std::unique_ptr<VideoSource>> OpenAvSource(const SourceOptions& options,
                                                    std::stop_token stop);

}  // namespace tactus
