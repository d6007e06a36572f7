#include "stream/video_source.h"

#ifdef TACTUS_HAVE_LIBAV
#include "stream/video/av_source.h"
#endif

namespace tactus {

bool CanReadVideo() {
#ifdef TACTUS_HAVE_LIBAV
  return true;
#else
  return false;
#endif
}

Expected<std::unique_ptr<VideoSource>> OpenVideo(const SourceOptions& options,
                                                 std::stop_token stop) {
#ifdef TACTUS_HAVE_LIBAV
  return OpenAvSource(options, std::move(stop));
#else
  (void)stop;
  return Fail(ErrorCode::kUnimplemented,
              options.source + ": this tactus was built without libav; run ./run build video");
#endif
}

}  // namespace tactus
