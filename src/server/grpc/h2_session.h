// HTTP/2 of one connection, without its socket: bytes in, events and bytes out. nghttp2 stays
// inside h2_session.cc.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/grpc/h2_output.h"

namespace tactus {

class H2Session {
 public:
  using Clock = std::chrono::steady_clock;
  using Fields = std::vector<std::pair<std::string_view, std::string_view>>;

  struct Options {
    std::uint32_t max_streams = 100;
    // Bytes of one call's header fields, each counted with 32 more as HTTP/2 does. A connection
    // that brings much more than that ends.
    std::size_t max_header = 16 << 10;
    // Pings that come at shorter intervals end the connection ("too_many_pings"), but for a few.
    std::chrono::milliseconds least_ping_interval{1000};
    // So many calls may be reset beyond those that were answered, and so many more a second.
    double resets = 1000;
    double resets_per_second = 100;
  };

  // The other side of one stream. Lives until OnClosed.
  class Stream {
   public:
    virtual ~Stream() = default;
    virtual void OnField(std::string_view name, std::string_view value) = 0;
    virtual void OnTooLarge() = 0;  // the header; fields are left out from here on
    virtual void OnHead() = 0;
    virtual void OnBytes(std::span<const std::byte> bytes) = 0;
    virtual void OnNoMore() = 0;
    virtual void OnClosed() = 0;
    // What is ready to go out: how many bytes, up to `most`, and whether the trailers follow.
    struct Ready {
      std::size_t size = 0;
      bool last = false;
    };
    virtual Ready OutReady(std::size_t most) = 0;
    virtual void OutTake(std::size_t size, H2Output& out) = 0;
    virtual Fields OutTrailers() = 0;
  };
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual Stream* OnCall(std::int32_t id) = 0;
    // The client goes by what SetFirstWindow said, also in streams that are open.
    virtual void OnFirstWindow() = 0;
    // The client has answered our ping.
    virtual void OnPong(std::uint64_t ping) = 0;
  };

  H2Session(const Options& options, Owner& owner);
  ~H2Session();

  // False: the connection is to end, behind what Pull gives.
  bool Feed(std::span<const std::byte> bytes);
  // Adds what is to be sent to `out`, some `most` bytes of it. False: the connection is broken.
  bool Pull(std::size_t most, H2Output& out);

  bool shaken() const;  // the client has sent its settings
  bool over() const;    // neither side has anything more to say

  // Once for each stream; `end`: without bytes and trailers behind it.
  void Respond(std::int32_t id, Stream& stream, const Fields& fields, bool end);
  // The stream has bytes or its end again, after OutReady had none.
  void Resume(std::int32_t id);
  // What a client may send in a stream that it opens, before it hears anything of it.
  void SetFirstWindow(std::size_t bytes);
  // What the client may still send in the stream (0: in all together), below 0 after a first window
  // became smaller; and more of it.
  std::int64_t Window(std::int32_t id) const;
  void Widen(std::int32_t id, std::size_t bytes);
  void Cancel(std::int32_t id);
  // Goes out before everything that waits.
  void Ping(std::uint64_t ping);
  // No calls are taken from now on; those that are there go on.
  void Goodbye();

 private:
  struct Body;
  const std::unique_ptr<Body> body_;
};

}  // namespace tactus
