#include "server/grpc/h2_session.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <new>

#include <nghttp2/nghttp2.h>

#include "base/check.h"

namespace tactus {
namespace {

// What may come in before our window updates are there, of all streams together. What comes is
// taken at once: each stream's own window bounds what waits.
constexpr int kConnectionWindow = 16 << 20;

// Pings that come too soon, before the connection ends.
constexpr int kPingStrikes = 2;

// Settings of one frame. Frames that carry on a header are nghttp2's to count.
constexpr std::size_t kMostSettings = 32;
// Answers to pings and settings that the client leaves unread.
constexpr std::size_t kMostAcks = 1000;
// Of a header beyond its limit, before the connection ends.
constexpr std::size_t kHeadersBeyond = 4;

// A frame of a reply's bytes. A larger one costs less, and holds up other calls for longer.
constexpr std::size_t kMostFrame = 64 << 10;

std::vector<nghttp2_nv> ToNv(const H2Session::Fields& fields) {
  std::vector<nghttp2_nv> all;
  all.reserve(fields.size());
  for (const auto& [name, value] : fields) {
    const auto bytes = [](std::string_view text) {
      return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
    };
    all.push_back({bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
  }
  return all;
}

}  // namespace

struct H2Session::Body {
  Body(const Options& given, Owner& o) : options(given), owner(o), resets(given.resets) {}

  Stream* Find(std::int32_t id) const {
    return static_cast<Stream*>(nghttp2_session_get_stream_user_data(session, id));
  }
  // The client has gone too far.
  void End(std::uint32_t code, std::string_view why) {
    if (std::exchange(ended, true)) return;
    nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(session), code,
                          reinterpret_cast<const std::uint8_t*>(why.data()), why.size());
  }
  static void SetReading(nghttp2_session_callbacks* calls);
  static void SetWriting(nghttp2_session_callbacks* calls);
  void OnPing();
  void OnReset();
  int OnFrame(const nghttp2_frame& frame);
  int OnField(const nghttp2_frame& frame, std::string_view name, std::string_view value);
  int OnSent(const nghttp2_frame& frame);

  const Options options;
  Owner& owner;
  nghttp2_session* session = nullptr;
  H2Output* out = nullptr;  // while Pull runs
  Clock::time_point now;    // of Feed
  bool shaken = false;
  bool leaving = false;
  bool ended = false;
  bool in_header = false;
  std::size_t header = 0;       // bytes of the fields of the header that comes
  std::size_t header_wire = 0;  // and of what was fed while it came
  Clock::time_point pinged;
  int strikes = 0;
  double resets;
  Clock::time_point resets_at;
};

namespace {

// Runs what nghttp2 calls back: no exception may cross it.
template <class Call>
int Guarded(Call&& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  }
}

}  // namespace

void H2Session::Body::OnPing() {
  if (pinged != Clock::time_point{} && now - pinged < options.least_ping_interval) {
    if (++strikes > kPingStrikes) return End(NGHTTP2_ENHANCE_YOUR_CALM, "too_many_pings");
  }
  pinged = now;
}

void H2Session::Body::OnReset() {
  if (resets_at != Clock::time_point{}) {
    const double passed = std::chrono::duration<double>(now - resets_at).count();
    resets = std::min(options.resets, resets + passed * options.resets_per_second);
  }
  resets_at = now;
  resets -= 1;
  if (resets < 0) End(NGHTTP2_ENHANCE_YOUR_CALM, "too_many_resets");
}

int H2Session::Body::OnFrame(const nghttp2_frame& frame) {
  const bool ends = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  const bool answers = (frame.hd.flags & NGHTTP2_FLAG_ACK) != 0;
  Stream* const stream = frame.hd.stream_id == 0 ? nullptr : Find(frame.hd.stream_id);
  in_header = false;
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS:
      if (stream == nullptr) break;
      if (frame.headers.cat == NGHTTP2_HCAT_REQUEST) stream->OnHead();
      if (ends) stream->OnNoMore();
      break;
    case NGHTTP2_DATA:
      if (stream != nullptr && ends) stream->OnNoMore();
      break;
    case NGHTTP2_PING:
      if (answers) {
        owner.OnPong(std::bit_cast<std::uint64_t>(frame.ping.opaque_data));
      } else {
        OnPing();
      }
      break;
    case NGHTTP2_SETTINGS:
      shaken = true;
      if (answers) owner.OnFirstWindow();
      break;
    case NGHTTP2_RST_STREAM:
      if (stream != nullptr) OnReset();
      break;
    default:
      break;
  }
  return 0;
}

int H2Session::Body::OnField(const nghttp2_frame& frame, std::string_view name,
                             std::string_view value) {
  header += name.size() + value.size() + 32;
  if (header > kHeadersBeyond * options.max_header) {
    End(NGHTTP2_ENHANCE_YOUR_CALM, "header_too_large");
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  }
  Stream* const stream = Find(frame.hd.stream_id);
  if (stream == nullptr || frame.headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  header > options.max_header ? stream->OnTooLarge() : stream->OnField(name, value);
  return 0;
}

int H2Session::Body::OnSent(const nghttp2_frame& frame) {
  if (frame.hd.type != NGHTTP2_HEADERS && frame.hd.type != NGHTTP2_DATA) return 0;
  strikes = 0;
  pinged = {};
  if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
  resets = std::min(options.resets, resets + 1);
  // What the client would still send, nobody reads.
  if (nghttp2_session_get_stream_remote_close(session, frame.hd.stream_id) == 0) {
    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame.hd.stream_id, NGHTTP2_NO_ERROR);
  }
  return 0;
}

void H2Session::Body::SetReading(nghttp2_session_callbacks* calls) {
  nghttp2_session_callbacks_set_on_begin_headers_callback(
      calls, [](nghttp2_session* session, const nghttp2_frame* frame, void* user) {
        return Guarded([&] {
          auto& body = *static_cast<Body*>(user);
          body.in_header = true;
          body.header = body.header_wire = 0;
          const bool begins = frame->headers.cat == NGHTTP2_HCAT_REQUEST;
          if (!begins || body.ended || body.leaving) return 0;
          Stream* const stream = body.owner.OnCall(frame->hd.stream_id);
          return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
        });
      });
  nghttp2_session_callbacks_set_on_header_callback(
      calls, [](nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                std::uint8_t, void* user) {
        return Guarded([&] {
          return static_cast<Body*>(user)->OnField(
              *frame, {reinterpret_cast<const char*>(name), name_size},
              {reinterpret_cast<const char*>(value), value_size});
        });
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      calls, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
        return Guarded([&] { return static_cast<Body*>(user)->OnFrame(*frame); });
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      calls, [](nghttp2_session* session, std::uint8_t, std::int32_t id, const std::uint8_t* data,
                std::size_t size, void* user) {
        return Guarded([&] {
          auto& body = *static_cast<Body*>(user);
          body.in_header = false;
          Stream* const stream = body.Find(id);
          if (stream != nullptr) stream->OnBytes(std::as_bytes(std::span(data, size)));
          return nghttp2_session_consume_connection(session, size);
        });
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      calls, [](nghttp2_session* session, std::int32_t id, std::uint32_t, void* user) {
        return Guarded([&] {
          Stream* const stream = static_cast<Body*>(user)->Find(id);
          if (stream == nullptr) return 0;
          nghttp2_session_set_stream_user_data(session, id, nullptr);
          stream->OnClosed();
          return 0;
        });
      });
}

void H2Session::Body::SetWriting(nghttp2_session_callbacks* calls) {
  nghttp2_session_callbacks_set_on_frame_send_callback(
      calls, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
        return Guarded([&] { return static_cast<Body*>(user)->OnSent(*frame); });
      });
  nghttp2_session_callbacks_set_send_data_callback(
      calls, [](nghttp2_session*, nghttp2_frame*, const std::uint8_t* head, std::size_t size,
                nghttp2_data_source* source, void* user) {
        return Guarded([&] {
          constexpr std::size_t kFrameHead = 9;
          H2Output& out = *static_cast<Body*>(user)->out;
          out.Copy(head, kFrameHead);
          static_cast<Stream*>(source->ptr)->OutTake(size, out);
          return 0;
        });
      });
  nghttp2_session_callbacks_set_data_source_read_length_callback(
      calls,
      [](nghttp2_session*, std::uint8_t, std::int32_t, std::int32_t session_window,
         std::int32_t stream_window, std::uint32_t most_frame, void*) -> ssize_t {
        const auto window = static_cast<std::size_t>(std::min(session_window, stream_window));
        return static_cast<ssize_t>(std::min({window, std::size_t{most_frame}, kMostFrame}));
      });
}

H2Session::H2Session(const Options& options, Owner& owner)
    : body_(std::make_unique<Body>(options, owner)) {
  nghttp2_session_callbacks* calls = nullptr;
  nghttp2_option* settings = nullptr;
  CHECK(nghttp2_session_callbacks_new(&calls) == 0 && nghttp2_option_new(&settings) == 0,
        "there is memory for a session");
  Body::SetReading(calls);
  Body::SetWriting(calls);
  nghttp2_option_set_no_auto_window_update(settings, 1);
  nghttp2_option_set_max_settings(settings, kMostSettings);
  nghttp2_option_set_max_outbound_ack(settings, kMostAcks);
  // Its own count of resets has no regard for the calls that were answered: see OnReset.
  constexpr std::uint64_t kAny = std::uint64_t{1} << 32;
  nghttp2_option_set_stream_reset_rate_limit(settings, kAny, kAny);
  const int made = nghttp2_session_server_new2(&body_->session, calls, body_.get(), settings);
  nghttp2_session_callbacks_del(calls);
  nghttp2_option_del(settings);
  if (made != 0) throw std::bad_alloc();
  const std::array<nghttp2_settings_entry, 2> entries{{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options.max_streams},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(options.max_header)},
  }};
  nghttp2_submit_settings(body_->session, NGHTTP2_FLAG_NONE, entries.data(), entries.size());
  nghttp2_session_set_local_window_size(body_->session, NGHTTP2_FLAG_NONE, 0, kConnectionWindow);
}

H2Session::~H2Session() { nghttp2_session_del(body_->session); }

bool H2Session::Feed(std::span<const std::byte> bytes) {
  Body& body = *body_;
  body.now = Clock::now();
  const ssize_t taken = nghttp2_session_mem_recv(
      body.session, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  // A header that never ends may have no fields at all.
  if (body.in_header) {
    body.header_wire += bytes.size();
    constexpr std::size_t kAtOnce = std::size_t{128} << 10;
    if (body.header_wire > kHeadersBeyond * body.options.max_header + kAtOnce) {
      body.End(NGHTTP2_ENHANCE_YOUR_CALM, "header_too_large");
    }
  }
  return taken >= 0 && !body.ended;
}

bool H2Session::Pull(std::size_t most, H2Output& out) {
  body_->out = &out;
  ssize_t size = 0;
  while (out.size() < most) {
    const std::uint8_t* data = nullptr;
    size = nghttp2_session_mem_send(body_->session, &data);
    if (size <= 0) break;
    out.Copy(data, static_cast<std::size_t>(size));
  }
  body_->out = nullptr;
  return size >= 0;
}

bool H2Session::shaken() const { return body_->shaken; }

bool H2Session::over() const {
  return nghttp2_session_want_read(body_->session) == 0 &&
         nghttp2_session_want_write(body_->session) == 0;
}

void H2Session::Respond(std::int32_t id, Stream& stream, const Fields& fields, bool end) {
  const auto all = ToNv(fields);
  nghttp2_data_provider bytes{};
  bytes.source.ptr = &stream;
  bytes.read_callback = [](nghttp2_session* session, std::int32_t stream_id, std::uint8_t*,
                           std::size_t most, std::uint32_t* flags, nghttp2_data_source* source,
                           void*) -> ssize_t {
    return Guarded([&]() -> int {
      Stream& from = *static_cast<Stream*>(source->ptr);
      const Stream::Ready ready = from.OutReady(most);
      if (ready.size == 0 && !ready.last) return NGHTTP2_ERR_DEFERRED;
      if (ready.size > 0) *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
      if (ready.last) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        const auto trailers = ToNv(from.OutTrailers());
        nghttp2_submit_trailer(session, stream_id, trailers.data(), trailers.size());
      }
      return static_cast<int>(ready.size);
    });
  };
  nghttp2_submit_response(body_->session, id, all.data(), all.size(), end ? nullptr : &bytes);
}

void H2Session::Resume(std::int32_t id) { nghttp2_session_resume_data(body_->session, id); }

void H2Session::SetFirstWindow(std::size_t bytes) {
  const nghttp2_settings_entry window{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
                                      static_cast<std::uint32_t>(bytes)};
  nghttp2_submit_settings(body_->session, NGHTTP2_FLAG_NONE, &window, 1);
}

std::int64_t H2Session::Window(std::int32_t id) const {
  return nghttp2_session_get_stream_local_window_size(body_->session, id);
}

void H2Session::Widen(std::int32_t id, std::size_t bytes) {
  nghttp2_submit_window_update(body_->session, NGHTTP2_FLAG_NONE, id,
                               static_cast<std::int32_t>(bytes));
}

void H2Session::Cancel(std::int32_t id) {
  nghttp2_submit_rst_stream(body_->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
}

void H2Session::Ping(std::uint64_t ping) {
  const auto bytes = std::bit_cast<std::array<std::uint8_t, sizeof ping>>(ping);
  nghttp2_submit_ping(body_->session, NGHTTP2_FLAG_NONE, bytes.data());
}

void H2Session::Goodbye() {
  if (body_->ended || std::exchange(body_->leaving, true)) return;
  nghttp2_submit_goaway(body_->session, NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(body_->session), NGHTTP2_NO_ERROR,
                        nullptr, 0);
}

}  // namespace tactus
