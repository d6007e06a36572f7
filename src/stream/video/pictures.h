// Frames as libav hands them over. Includes libav: for this folder only.
#pragma once

#include <memory>
#include <utility>

#include "stream/frame.h"
#include "stream/video/av_types.h"

namespace tactus {

// Turns decoded pictures of one stream into JPEGs; the conversion is set up once for a format.
class Converter {
 public:
  Expected<std::string> Jpeg(const AVFrame& frame);

 private:
  Av<SwsContext> scale_;
  Av<AVFrame> full_;  // full range, 4:2:0
  int width_ = 0;
  int height_ = 0;
  int format_ = -1;
  int range_ = -1;
};

// A packet that is a JPEG already.
std::unique_ptr<Picture> PacketPicture(Av<AVPacket> packet);
// A decoded frame. `converter` is used by one picture at a time.
std::unique_ptr<Picture> DecodedPicture(Av<AVFrame> frame, std::shared_ptr<Converter> converter);

}  // namespace tactus
