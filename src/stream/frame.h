// A frame of a video on its way from its source to a pipeline, and how its way may end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "base/serving_time.h"

namespace tactus {

// A picture as its source brought it: the bytes of a JPEG where the camera sends those, else a
// decoded picture in the camera's own colours. What it costs to make a JPEG of it is spent in Jpeg.
class Picture {
 public:
  virtual ~Picture() = default;
  // One JPEG; InvalidArgument where the picture cannot be converted. From one thread at a time.
  virtual Expected<std::string> Jpeg() = 0;
};

struct Frame {
  std::uint64_t number = 0;  // of its stream, from 1, gaps where frames were dropped
  TimePoint captured;
  TimePoint deadline;  // captured + the stream's SLO
  std::unique_ptr<Picture> picture;
};

// How a frame ended. Each frame that a source brought is counted under exactly one of them, unless
// it still waits or is in flight.
enum class FrameEnd : std::uint8_t {
  kCorrupt,  // the decoder could not read it
  kEvery,    // only every n-th frame is wanted
  kPaced,    // more frames a second than are wanted
  kNewer,    // a newer frame pushed it out of the queue
  kStale,    // by the latest answers, its deadline can no longer be met
  kStopped,  // the stream ended before it was answered
  kUnmade,   // no JPEG could be made of it
  kRefused,  // the server had no room for it, or gave it up in favour of others
  kTooLate,  // the server ended it at its deadline
  kFailed,   // the server could not answer it, or was not reached
  kLate,     // answered after its deadline
  kServed,   // answered in time
};
inline constexpr std::size_t kFrameEnds = 12;

struct FrameEndName {
  std::string_view stage;  // decode, pace, queue, encode, server or answer
  std::string_view reason;
};
constexpr FrameEndName Name(FrameEnd end) {
  constexpr std::array<FrameEndName, kFrameEnds> kNames = {{{"decode", "corrupt"},
                                                            {"pace", "every"},
                                                            {"pace", "fps"},
                                                            {"queue", "newer"},
                                                            {"queue", "stale"},
                                                            {"queue", "stopped"},
                                                            {"encode", "failed"},
                                                            {"server", "refused"},
                                                            {"server", "too_late"},
                                                            {"server", "failed"},
                                                            {"answer", "late"},
                                                            {"answer", "served"}}};
  return kNames[static_cast<std::size_t>(end)];
}

// Frames of a stream, by how they ended.
struct FrameCounts {
  std::uint64_t read = 0;  // that the source brought
  std::array<std::uint64_t, kFrameEnds> ends{};

  std::uint64_t& of(FrameEnd end) { return ends[static_cast<std::size_t>(end)]; }
  std::uint64_t of(FrameEnd end) const { return ends[static_cast<std::size_t>(end)]; }
  // All that came to an end.
  std::uint64_t ended() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : ends) sum += count;
    return sum;
  }
};

}  // namespace tactus
