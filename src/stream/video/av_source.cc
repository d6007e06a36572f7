// Video sources over libav.
#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stream/jpeg.h"
#include "stream/video/av_types.h"
#include "stream/video/pictures.h"
#include "stream/video_library.h"

namespace tactus {
namespace {

using Clock = std::chrono::steady_clock;

// Containers of cameras and recordings. None of them names further files or addresses, as playlists
// do, which would let the source's owner read what this process may.
constexpr const char* kFormats =
    "mjpeg,mpjpeg,jpeg_pipe,mov,mp4,matroska,webm,avi,mpegts,flv,h264,hevc,rtsp,rtp,sdp,asf,ogg,"
    "mpegvideo,m4v,ivf,nut,y4m,yuv4mpegpipe";

// Bytes of an MJPEG source's frame; a larger one counts as corrupt.
constexpr int kMostJpeg = 32 << 20;

struct Protocols {
  std::string url;
  const char* allowed = nullptr;
};

Expected<Protocols> ProtocolsOf(const std::string& source) {
  if (Status known = CheckSource(source); !known) return std::unexpected(known.error());
  if (!IsLive(source)) return Protocols{"file:" + source, "file"};
  const std::string scheme = source.substr(0, source.find("://"));
  if (scheme == "http" || scheme == "https") return Protocols{source, "http,https,tcp,tls"};
  return Protocols{source, "rtsp,rtsps,rtp,udp,tcp,tls"};
}

void Hush() {
  [[maybe_unused]] static const bool once = [] {
    av_log_set_level(AV_LOG_QUIET);  // each error comes back as a value
    return true;
  }();
}

// Whether the file begins as a JPEG, PNG, GIF or BMP does.
bool IsPicture(const std::filesystem::path& path) {
  std::array<char, 4> read{};
  std::ifstream(path, std::ios::binary).read(read.data(), read.size());
  const std::string_view head(read.data(), read.size());
  constexpr std::array<std::string_view, 4> kHeads = {"\xFF\xD8\xFF", "\x89PNG", "GIF8", "BM"};
  return std::ranges::any_of(kHeads, [&](std::string_view each) { return head.starts_with(each); });
}

std::unexpected<Error> SinglePicture(const std::filesystem::path& path) {
  const auto named = std::filesystem::path(path.filename()).replace_extension(".mjpeg").string();
  return InvalidArgument(fmt::format(
      "{}: is a single picture, and a stream reads a recording or a camera; a JPEG under "
      "the name {} is a recording of one frame",
      path.string(), named));
}

struct Options {
  AVDictionary* all = nullptr;
  ~Options() { av_dict_free(&all); }
  void Set(const char* key, const std::string& value) { av_dict_set(&all, key, value.c_str(), 0); }
};

class AvSource final : public VideoSource {
 public:
  AvSource(const SourceOptions& options, std::stop_token stop)
      : options_(options), stop_(std::move(stop)) {}

  Status Open();
  Expected<std::optional<SourceFrame>> Read() override;

 private:
  static int Interrupted(void* self);
  Status FindVideo();
  std::unexpected<Error> Lost(std::string_view what, int error) const;
  Duration At(std::int64_t stamp);
  std::optional<SourceFrame> Decoded();

  const SourceOptions options_;
  const std::stop_token stop_;
  Clock::time_point silent_since_ = Clock::now();
  Av<AVFormatContext> format_;
  Av<AVCodecContext> codec_;  // null: the packets are JPEGs
  std::shared_ptr<Converter> converter_ = std::make_shared<Converter>();
  int index_ = -1;
  bool flushed_ = false;
  double frame_s_ = 0.04;  // where frames have no time stamps
  std::int64_t frames_ = 0;
  std::optional<std::int64_t> first_stamp_;
};

int AvSource::Interrupted(void* self) {
  const auto& source = *static_cast<const AvSource*>(self);
  return source.stop_.stop_requested() ||
         Clock::now() - source.silent_since_ > source.options_.timeout;
}

std::unexpected<Error> AvSource::Lost(std::string_view what, int error) const {
  if (stop_.stop_requested()) return Fail(ErrorCode::kCancelled, "the stream was stopped");
  if (Clock::now() - silent_since_ > options_.timeout) {
    return Fail(ErrorCode::kUnavailable, fmt::format("{}: {} for {:g} s", Shown(options_.source),
                                                     "no frame came", ToSeconds(options_.timeout)));
  }
  const auto code = error == AVERROR_INVALIDDATA || error == AVERROR(ENOENT)
                        ? ErrorCode::kInvalidArgument
                        : ErrorCode::kUnavailable;
  return Fail(code, fmt::format("{}: {}: {}", Shown(options_.source), what, AvText(error)));
}

Status AvSource::Open() {
  Hush();
  auto protocols = ProtocolsOf(options_.source);
  if (!protocols) return std::unexpected(protocols.error());
  // Nothing ends a read of a pipe that nobody writes to. What is not there libav tells of.
  std::error_code unseen;
  const auto kind = std::filesystem::status(options_.source, unseen).type();
  if (!IsLive(options_.source) && std::filesystem::exists(std::filesystem::file_status(kind)) &&
      kind != std::filesystem::file_type::regular) {
    return InvalidArgument(options_.source + ": a path must be of a regular file");
  }
  AVFormatContext* raw = avformat_alloc_context();
  if (raw == nullptr) return Internal("no memory for a video source");
  raw->interrupt_callback = {&Interrupted, this};
  Options options;
  options.Set("protocol_whitelist", protocols->allowed);
  options.Set("format_whitelist", kFormats);
  options.Set("rtsp_transport", "tcp");
  // A live source is not looked at for seconds before its first frame comes.
  if (IsLive(options_.source)) {
    options.Set("analyzeduration", "500000");
    options.Set("probesize", "500000");
  }
  // Frees `raw` where it fails.
  const int failed = avformat_open_input(&raw, protocols->url.c_str(), nullptr, &options.all);
  if (failed < 0 && IsPicture(options_.source)) return SinglePicture(options_.source);
  if (failed < 0) return Lost("cannot be opened", failed);
  format_.reset(raw);
  return FindVideo();
}

Status AvSource::FindVideo() {
  const auto best = [&](const AVCodec** decoder) {
    return av_find_best_stream(format_.get(), AVMEDIA_TYPE_VIDEO, -1, -1, decoder, 0);
  };
  const AVCodec* decoder = nullptr;
  index_ = best(&decoder);
  const auto is_jpeg = [&] {
    return index_ >= 0 && format_->streams[index_]->codecpar->codec_id == AV_CODEC_ID_MJPEG;
  };
  if (!is_jpeg()) {
    // It opens decoders of its own.
    std::vector<AVDictionary*> limits(format_->nb_streams);
    for (AVDictionary*& limit : limits) av_dict_set_int(&limit, "max_pixels", kMostPixels, 0);
    const int failed = avformat_find_stream_info(format_.get(), limits.data());
    for (AVDictionary*& limit : limits) av_dict_free(&limit);
    if (failed < 0) return Lost("cannot be read as video", failed);
    index_ = best(&decoder);
  }
  if (index_ < 0) return InvalidArgument(Shown(options_.source) + ": there is no video in it");
  AVStream& stream = *format_->streams[index_];
  for (unsigned i = 0; i < format_->nb_streams; ++i) {
    if (static_cast<int>(i) != index_) format_->streams[i]->discard = AVDISCARD_ALL;
  }
  const AVRational rate =
      stream.avg_frame_rate.num > 0 ? stream.avg_frame_rate : stream.r_frame_rate;
  if (rate.num > 0 && rate.den > 0) frame_s_ = av_q2d(av_inv_q(rate));
  if (is_jpeg()) return {};
  if (decoder == nullptr) {
    return InvalidArgument(fmt::format("{}: this libav cannot decode {}", Shown(options_.source),
                                       avcodec_get_name(stream.codecpar->codec_id)));
  }
  codec_.reset(avcodec_alloc_context3(decoder));
  if (codec_ == nullptr) return Internal("no memory for a decoder");
  codec_->thread_count = 1;  // streams run beside each other
  // Cameras send frames in the order of their capture; recordings may not.
  if (IsLive(options_.source)) codec_->flags |= AV_CODEC_FLAG_LOW_DELAY;
  avcodec_parameters_to_context(codec_.get(), stream.codecpar);
  codec_->max_pixels = kMostPixels;
  const int failed = avcodec_open2(codec_.get(), decoder, nullptr);
  if (failed < 0) return Lost("its decoder does not start", failed);
  return {};
}

// From the first frame, by the source's own stamps where it has them.
Duration AvSource::At(std::int64_t stamp) {
  const std::int64_t number = frames_++;
  if (stamp == AV_NOPTS_VALUE) return FromSeconds(static_cast<double>(number) * frame_s_);
  if (!first_stamp_) first_stamp_ = stamp;
  const AVRational base = format_->streams[index_]->time_base;
  return FromSeconds(static_cast<double>(stamp - *first_stamp_) * av_q2d(base));
}

// A frame that the decoder has ready.
std::optional<SourceFrame> AvSource::Decoded() {
  Av<AVFrame> frame(av_frame_alloc());
  if (frame == nullptr || avcodec_receive_frame(codec_.get(), frame.get()) < 0) return std::nullopt;
  const Duration at = At(frame->best_effort_timestamp);
  return SourceFrame{DecodedPicture(std::move(frame), converter_), at};
}

Expected<std::optional<SourceFrame>> AvSource::Read() {
  silent_since_ = Clock::now();
  for (;;) {
    if (codec_ != nullptr) {
      if (auto frame = Decoded()) return frame;
      if (flushed_) return std::nullopt;
    }
    Av<AVPacket> packet(av_packet_alloc());
    if (packet == nullptr) return Internal("no memory for a packet");
    const int failed = av_read_frame(format_.get(), packet.get());
    if (failed == AVERROR_EOF && !stop_.stop_requested()) {
      if (codec_ == nullptr) return std::nullopt;
      flushed_ = true;
      avcodec_send_packet(codec_.get(), nullptr);
      continue;
    }
    if (failed < 0) return Lost("broke off", failed);
    if (packet->stream_index != index_) continue;
    if (codec_ == nullptr) {
      const Duration at = At(packet->pts);
      if (packet->size < 4 || packet->size > kMostJpeg) return SourceFrame{nullptr, at};
      return SourceFrame{PacketPicture(std::move(packet)), at};
    }
    // What the decoder cannot read is counted, not the end.
    const int sent = avcodec_send_packet(codec_.get(), packet.get());
    if (sent < 0 && sent != AVERROR(EAGAIN)) return SourceFrame{nullptr, At(AV_NOPTS_VALUE)};
  }
}

Expected<std::unique_ptr<VideoSource>> OpenAvSource(const SourceOptions& options,
                                                    std::stop_token stop) {
  auto source = std::make_unique<AvSource>(options, std::move(stop));
  if (Status opened = source->Open(); !opened) return std::unexpected(opened.error());
  return source;
}

}  // namespace
}  // namespace tactus

// All that the library shows.
extern "C" [[gnu::visibility("default")]] const tactus::VideoEntry tactus_video;
const tactus::VideoEntry tactus_video{TACTUS_VERSION, tactus::OpenAvSource};
