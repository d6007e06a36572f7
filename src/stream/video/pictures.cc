#include "stream/video/pictures.h"

#include <string>

#include "stream/jpeg.h"

namespace tactus {
namespace {

class JpegPacket final : public Picture {
 public:
  explicit JpegPacket(Av<AVPacket> packet) : packet_(std::move(packet)) {}
  Expected<std::string> Jpeg() override {
    return std::string(reinterpret_cast<const char*>(packet_->data),
                       static_cast<std::size_t>(packet_->size));
  }

 private:
  const Av<AVPacket> packet_;
};

class DecodedFrame final : public Picture {
 public:
  DecodedFrame(Av<AVFrame> frame, std::shared_ptr<Converter> converter)
      : frame_(std::move(frame)), converter_(std::move(converter)) {}
  Expected<std::string> Jpeg() override { return converter_->Jpeg(*frame_); }

 private:
  const Av<AVFrame> frame_;
  const std::shared_ptr<Converter> converter_;
};

// To 4:2:0 of full range and BT.601, as JPEGs have it. The ranges are said before it is set up:
// equal formats would only be copied else.
Av<SwsContext> MakeScale(const AVFrame& frame, int range) {
  Av<SwsContext> scale(sws_alloc_context());
  if (scale == nullptr) return scale;
  const std::pair<const char*, int> options[] = {
      {"srcw", frame.width},        {"srch", frame.height},
      {"dstw", frame.width},        {"dsth", frame.height},
      {"src_format", frame.format}, {"dst_format", AV_PIX_FMT_YUV420P},
      {"src_range", range},         {"dst_range", 1},
      {"sws_flags", SWS_BILINEAR}};
  for (const auto& [name, value] : options) av_opt_set_int(scale.get(), name, value, 0);
  const int* from =
      sws_getCoefficients(frame.colorspace == AVCOL_SPC_BT709 ? SWS_CS_ITU709 : SWS_CS_DEFAULT);
  sws_setColorspaceDetails(scale.get(), from, range, sws_getCoefficients(SWS_CS_DEFAULT), 1, 0,
                           1 << 16, 1 << 16);
  if (sws_init_context(scale.get(), nullptr, nullptr) < 0) return nullptr;
  return scale;
}

}  // namespace

Expected<std::string> Converter::Jpeg(const AVFrame& frame) {
  if (std::int64_t{frame.width} * frame.height > kMostPixels) {
    return InvalidArgument("the frame has too many pixels");
  }
  const int range = frame.color_range == AVCOL_RANGE_JPEG ? 1 : 0;
  if (frame.width != width_ || frame.height != height_ || frame.format != format_ ||
      range != range_) {
    format_ = -1;  // until all of it is there
    full_.reset(av_frame_alloc());
    scale_ = MakeScale(frame, range);
    if (scale_ == nullptr || full_ == nullptr) {
      return InvalidArgument("no JPEG can be made of the source's pixel format");
    }
    full_->width = frame.width;
    full_->height = frame.height;
    full_->format = AV_PIX_FMT_YUV420P;
    if (av_frame_get_buffer(full_.get(), 0) < 0) return Internal("no memory for a frame");
    width_ = frame.width;
    height_ = frame.height;
    format_ = frame.format;
    range_ = range;
  }
  if (sws_scale(scale_.get(), frame.data, frame.linesize, 0, frame.height, full_->data,
                full_->linesize) != frame.height) {
    return InvalidArgument("the frame cannot be converted");
  }
  return EncodeJpeg(YuvPlanes{width_,
                              height_,
                              {full_->data[0], full_->data[1], full_->data[2]},
                              {full_->linesize[0], full_->linesize[1], full_->linesize[2]}});
}

std::unique_ptr<Picture> PacketPicture(Av<AVPacket> packet) {
  return std::make_unique<JpegPacket>(std::move(packet));
}

std::unique_ptr<Picture> DecodedPicture(Av<AVFrame> frame, std::shared_ptr<Converter> converter) {
  return std::make_unique<DecodedFrame>(std::move(frame), std::move(converter));
}

}  // namespace tactus
