// Through the library, as the program reads video.
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/temporary_folder_test.h"
#include "stream/jpeg.h"
#include "stream/video/av_types.h"
#include "stream/video_source.h"

namespace tactus {
namespace {

using testing::HasSubstr;

RgbPicture Grey(int value, int width = 64, int height = 48) {
  const auto bytes = static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3;
  return {width, height, std::vector<std::uint8_t>(bytes, static_cast<std::uint8_t>(value))};
}

std::vector<std::string> GreyJpegs(int frames) {
  std::vector<std::string> jpegs;
  for (int i = 0; i < frames; ++i) jpegs.push_back(*EncodeJpeg(Grey(20 + 20 * i)));
  return jpegs;
}

// A recording of grey frames, each lighter than the one before it, at 10 frames a second.
void WriteRecording(const std::filesystem::path& path, int frames,
                    AVCodecID encoder = AV_CODEC_ID_MPEG4) {
  AVFormatContext* raw = nullptr;
  avformat_alloc_output_context2(&raw, nullptr, nullptr, path.c_str());
  const Av<AVCodecContext> codec(avcodec_alloc_context3(avcodec_find_encoder(encoder)));
  codec->width = 64;
  codec->height = 48;
  codec->pix_fmt = AV_PIX_FMT_YUV420P;
  codec->time_base = {1, 10};
  codec->gop_size = 5;
  if (encoder == AV_CODEC_ID_H264) codec->max_b_frames = 2;  // stored in another order
  codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER | AV_CODEC_FLAG_QSCALE;
  codec->global_quality = FF_QP2LAMBDA;  // the best
  CHECK(avcodec_open2(codec.get(), codec->codec, nullptr) == 0, "the encoder starts");
  AVStream* stream = avformat_new_stream(raw, nullptr);
  avcodec_parameters_from_context(stream->codecpar, codec.get());
  stream->time_base = codec->time_base;
  CHECK(avio_open(&raw->pb, path.c_str(), AVIO_FLAG_WRITE) == 0 &&
            avformat_write_header(raw, nullptr) >= 0,
        "the test's folder can be written");
  const Av<AVFrame> frame(av_frame_alloc());
  const Av<AVPacket> packet(av_packet_alloc());
  for (int i = 0; i <= frames; ++i) {
    if (i < frames) {
      frame->width = 64;
      frame->height = 48;
      frame->format = AV_PIX_FMT_YUV420P;
      av_frame_get_buffer(frame.get(), 0);
      std::fill_n(frame->data[0], frame->linesize[0] * 48, std::uint8_t(40 + 20 * i));
      for (int p : {1, 2}) std::fill_n(frame->data[p], frame->linesize[p] * 24, std::uint8_t{128});
      frame->pts = i;
    }
    avcodec_send_frame(codec.get(), i < frames ? frame.get() : nullptr);
    while (avcodec_receive_packet(codec.get(), packet.get()) == 0) {
      packet->duration = 1;
      av_packet_rescale_ts(packet.get(), codec->time_base, stream->time_base);
      av_interleaved_write_frame(raw, packet.get());
    }
    av_frame_unref(frame.get());
  }
  av_write_trailer(raw);
  avio_closep(&raw->pb);
  avformat_free_context(raw);
}

struct Read {
  std::string jpeg;
  double at_s;
};

Expected<std::vector<Read>> ReadAllOf(const std::string& path) {
  auto source = OpenVideo({.source = path}, {});
  if (!source) return std::unexpected(source.error());
  std::vector<Read> frames;
  for (;;) {
    auto frame = (*source)->Read();
    if (!frame) return std::unexpected(frame.error());
    if (!*frame) return frames;
    if ((*frame)->picture == nullptr) continue;
    frames.push_back({*(*frame)->picture->Jpeg(), ToSeconds((*frame)->at)});
  }
}

// Without this, a camera's own JPEGs could be decoded and encoded again for nothing.
TEST(AvSource, PassesTheJpegsOfACameraOnAsTheyAre) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "camera.mjpeg";
  const auto jpegs = GreyJpegs(5);
  std::ofstream file(path, std::ios::binary);
  for (const std::string& jpeg : jpegs) file << jpeg;
  file.close();
  const auto frames = ReadAllOf(path);
  ASSERT_TRUE(frames) << frames.error().message;
  ASSERT_EQ(frames->size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ((*frames)[i].jpeg, jpegs[i]) << i;
    EXPECT_NEAR((*frames)[i].at_s, 0.04 * static_cast<double>(i), 1e-6);
  }
}

void ExpectEachGreyFrame(const std::string& path) {
  const auto frames = ReadAllOf(path);
  ASSERT_TRUE(frames) << frames.error().message;
  ASSERT_EQ(frames->size(), 8u);
  for (int i = 0; i < 8; ++i) {
    const Read& frame = (*frames)[static_cast<std::size_t>(i)];
    EXPECT_NEAR(frame.at_s, 0.1 * i, 1e-3);
    const auto picture = DecodeRgb(frame.jpeg);
    ASSERT_TRUE(picture) << picture.error().message;
    EXPECT_EQ(picture->width, 64);
    EXPECT_EQ(picture->height, 48);
    EXPECT_NEAR(picture->pixels[64 * 24 * 3 + 96], (40 + 20 * i - 16) * 255 / 219, 4) << i;
  }
}

// Without this, the frames of a recording could be lost at its end, out of step with its clock, or
// of the wrong brightness: its range is 16 to 235, that of a JPEG 0 to 255.
TEST(AvSource, DecodesEachFrameOfARecording) {
  const TemporaryFolder folder;
  for (const char* name : {"street.avi", "street.mp4", "street.mkv"}) {
    SCOPED_TRACE(name);
    WriteRecording(folder.path() / name, 8);
    ExpectEachGreyFrame(folder.path() / name);
  }
}

// Without this, frames that are stored in another order than they were captured would come so.
TEST(AvSource, DecodesH264WithFramesThatDependOnLaterOnes) {
  if (avcodec_find_encoder(AV_CODEC_ID_H264) == nullptr) {
    GTEST_SKIP() << "this libav cannot encode H.264: NOT TESTED";
  }
  const TemporaryFolder folder;
  for (const char* name : {"street.mp4", "street.mkv"}) {
    SCOPED_TRACE(name);
    WriteRecording(folder.path() / name, 8, AV_CODEC_ID_H264);
    ExpectEachGreyFrame(folder.path() / name);
  }
}

// Without this, a source could be a playlist that names other files of the server.
TEST(AvSource, RefusesWhatIsNoVideoOrNamesOtherFiles) {
  const TemporaryFolder folder;
  const auto video = folder.path() / "a.avi";
  WriteRecording(video, 3);
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder.path() / name) << text;
    return (folder.path() / name).string();
  };
  const std::string concat = write("list.ffconcat", "ffconcat version 1.0\nfile a.avi\n");
  const std::string playlist =
      write("list.m3u8", "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na.avi\n#EXT-X-ENDLIST\n");
  const std::string text = write("notes.txt", std::string(4096, 'x'));
  for (const std::string& path : {concat, playlist, text}) {
    const auto frames = ReadAllOf(path);
    ASSERT_FALSE(frames) << path;
    EXPECT_THAT(frames.error().message, HasSubstr(path));
  }
  EXPECT_THAT(ReadAllOf("/nowhere/a.avi").error().message, HasSubstr("No such file"));
  EXPECT_THAT(ReadAllOf("concat:a|b").error().message, HasSubstr("No such file"));
  for (const char* url : {"ftp://host/a", "file:///etc/passwd", "udp://0.0.0.0:1", "data://x"}) {
    EXPECT_THAT(ReadAllOf(url).error().message, HasSubstr("no such kind")) << url;
  }
}

// Without this, a source that is being opened could not be given up.
// Without this, a read of a pipe that nobody writes to would outlive every stop.
TEST(AvSource, RefusesAPathThatIsNoRegularFile) {
  const TemporaryFolder folder;
  const std::filesystem::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::filesystem::path& path :
       {pipe, folder.path(), std::filesystem::path("/dev/zero")}) {
    const auto source = OpenVideo({.source = path.string()}, {});
    ASSERT_FALSE(source) << path;
    EXPECT_EQ(source.error().code, ErrorCode::kInvalidArgument) << path;
    EXPECT_THAT(source.error().message, HasSubstr("regular file")) << path;
  }
}

TEST(AvSource, AStopEndsIt) {
  const TemporaryFolder folder;
  WriteRecording(folder.path() / "a.avi", 3);
  std::stop_source stop;
  stop.request_stop();
  const auto source = OpenVideo({.source = (folder.path() / "a.avi").string()}, stop.get_token());
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace tactus
