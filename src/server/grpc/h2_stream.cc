#include "server/grpc/h2_stream.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "server/access/access.h"
#include "server/grpc/h2_connection.h"
#include "server/grpc/method_scope.h"
#include "server/kserve/objectives.h"
#include "server/kserve/time_headers.h"

namespace tactus {
namespace {

// A window of HTTP/2 has 31 bits.
constexpr std::size_t kMostWindow = std::size_t{1} << 30;

constexpr std::string_view kCodings = "identity, deflate, gzip";

// As gRPC writes a status text into a field: what is no plain ASCII in hex.
std::string Percent(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte <= 0x7e && c != '%') {
      out += c;
    } else {
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

}  // namespace

H2Stream::H2Stream(std::shared_ptr<H2Connection> connection, std::int32_t id)
    : connection_(std::move(connection)), id_(id) {
  head_.arrived = connection_->came();
  head_.client = connection_->address();
}

H2Stream::~H2Stream() = default;

void H2Stream::OnField(std::string_view name, std::string_view value) {
  if (name == ":path") {
    head_.path = value;
  } else if (name == ":method") {
    post_ = value == "POST";
  } else if (name == "content-type") {
    grpc_ = value.starts_with("application/grpc");
  } else if (name == "authorization") {
    authorization_ = value;
  } else if (name == "grpc-timeout") {
    timeout_ = value;
  } else if (name == "grpc-encoding") {
    const auto coding = ParseContentEncoding(value);
    coding_known_ = coding.has_value();
    head_.coding = coding.value_or(Coding::kIdentity);
  } else if (name == kObjectiveHeader) {
    head_.objective = value;
  } else if (name == kTraceParentHeader) {
    head_.trace_parent = ReadTraceParent(value);
  } else if (const auto known = std::ranges::find(kTimeHeaders, name);
             known != kTimeHeaders.end()) {
    head_.times.emplace_back(*known, value);
  }
}

// What the header alone decides.
Status H2Stream::CheckHead() {
  H2Context& context = connection_->context();
  if (too_large_) {
    return Fail(
        ErrorCode::kResourceExhausted,
        fmt::format("the call's metadata has more than {} bytes", context.options.max_metadata));
  }
  if (timeout_) {
    TimeLimit limit;
    if (Status read = ReadTimeHeader("grpc-timeout", *timeout_, limit); !read) return read;
    if (limit.shortest()) head_.deadline = head_.arrived + *limit.shortest();
  }
  const auto found = context.methods.find(head_.path);
  if (found == context.methods.end()) {
    return Fail(ErrorCode::kUnimplemented,
                fmt::format("this server has no method '{}'", head_.path.substr(0, 200)));
  }
  rpc_ = &found->second;
  return {};
}

void H2Stream::OnHead() {
  headed_ = true;
  if (!post_) return RefuseHttp("405");
  if (!grpc_) return RefuseHttp("415");
  if (const Access* const access = connection_->context().access.get(); access != nullptr) {
    Admission admission = access->Admit(ScopeOfMethod(head_.path), authorization_);
    if (!admission.admitted()) {
      const CountRefusal& refused = connection_->context().options.refused;
      if (refused && ScopeOfMethod(head_.path) == Scope::kInfer) {
        refused(admission.http() == 401 ? RefusalReason::kUnauthenticated
                                        : RefusalReason::kPermissionDenied);
      }
      return Finish({.code = admission.grpc(), .text = std::move(admission.text), .trailers = {}});
    }
    if (!admission.client.empty()) head_.client = std::move(admission.client);
  }
  authorization_ = {};
  if (const Status fine = CheckHead(); !fine) return Finish(EndOf(fine, false));
  method_ = rpc_->begin(shared_from_this());
  if (!rpc_->waits) bring_by_ = head_.arrived + connection_->context().options.body_timeout;
  const auto method = method_;
  method->OnBegin();
}

void H2Stream::RefuseHttp(std::string_view status) {
  ended_ = deaf_ = responded_ = true;
  moved_ = Clock::now();
  connection_->session().Respond(id_, *this, {{":status", status}}, true);
}

void H2Stream::OnBytes(std::span<const std::byte> bytes) {
  if (deaf_) return;
  if (!held_.empty()) {
    held_.insert(held_.end(), bytes.begin(), bytes.end());
    return;
  }
  Feed(bytes);
  Widen();
}

void H2Stream::Feed(std::span<const std::byte> bytes) {
  const auto method = method_;
  while (!deaf_) {
    if (reader_.state() == MessageReader::State::kBegun) {
      if (!Begun(bytes)) deaf_ = true;
      continue;
    }
    if (reader_.state() == MessageReader::State::kWhole) {
      bring_by_.reset();
      Message message = reader_.Release();
      message.begun = message_begun_;
      whole_ = true;
      method->OnMessage(std::move(message));
      continue;
    }
    if (bytes.empty()) return;
    if (reader_.idle() && !method->Takes()) {
      held_.assign(bytes.begin(), bytes.end());
      return;
    }
    bytes = bytes.subspan(reader_.Take(bytes));
  }
}

// A message's length is there, and maybe its first bytes: whether the rest may come.
bool H2Stream::Begun(std::span<const std::byte> first) {
  message_begun_ = connection_->came();
  const auto refuse = [this](Error error) {
    Finish(EndOf(std::unexpected(std::move(error)), false));
    return false;
  };
  if (reader_.flag() > 1 ||
      (reader_.flag() == 1 && coding_known_ && head_.coding == Coding::kIdentity)) {
    return refuse(NoWholeMessage());
  }
  if (reader_.flag() == 1 && !coding_known_) {
    Finish({.code = 12,
            .text = fmt::format("the message is packed in a way that is not known here; there are: "
                                "{}",
                                kCodings),
            .trailers = {{"grpc-accept-encoding", std::string(kCodings)}}});
    return false;
  }
  if (reader_.size() > rpc_->most_bytes) {
    return refuse({ErrorCode::kResourceExhausted,
                   fmt::format("the message has {} bytes, more than the {} that one may have",
                               reader_.size(), rpc_->most_bytes)});
  }
  const CallMethod::Admission admitted =
      method_->Admit(reader_.size(), reader_.flag() == 1 ? std::span<const std::byte>() : first);
  if (admitted == CallMethod::Admission::kEnd) {
    connection_->OnUnread();
    return false;
  }
  try {
    admitted == CallMethod::Admission::kRead ? reader_.Hold() : reader_.Skip();
  } catch (const std::bad_alloc&) {
    return refuse({ErrorCode::kResourceExhausted, "no memory for this call: try again later"});
  }
  if (rpc_->waits) bring_by_ = Clock::now() + connection_->context().options.body_timeout;
  return true;
}

void H2Stream::Widen() {
  if (deaf_ || no_more_ || !held_.empty()) return;
  const auto window = static_cast<std::int64_t>(connection_->first_window());
  const auto missing = static_cast<std::int64_t>(std::min(reader_.missing(), kMostWindow));
  const std::int64_t more = window + missing - connection_->session().Window(id_);
  if (more >= window / 2) connection_->session().Widen(id_, static_cast<std::size_t>(more));
}

void H2Stream::OnNoMore() {
  no_more_ = true;
  if (held_.empty()) NoMore();
}

void H2Stream::OnCut() {
  if (ended_ || (no_more_ && !idles())) return;
  // Its messages are whole: the end of the connection says what END_STREAM would have said.
  if (whole_ && reader_.idle() && !idles()) return OnNoMore();
  connection_->session().Cancel(id_);
}

void H2Stream::NoMore() {
  if (deaf_ || method_ == nullptr) return;
  const auto method = method_;
  const bool cut = !reader_.idle();
  if (cut) reader_ = {};
  bring_by_.reset();
  method->OnNoMore(cut);
}

void H2Stream::ReadOn() {
  boost::asio::dispatch(connection_->io(), [self = shared_from_this()] {
    if (self->deaf_ || self->held_.empty()) return;
    const std::vector<std::byte> held = std::exchange(self->held_, {});
    self->Feed(held);
    if (self->no_more_ && self->held_.empty()) self->NoMore();
    self->Widen();
    self->connection_->Pump();
  });
}

void H2Stream::OnClosed() {
  if (std::exchange(closed_, true)) return;
  const auto self = shared_from_this();
  const auto method = std::exchange(method_, nullptr);
  deaf_ = true;
  reader_ = {};
  out_.clear();
  out_size_ = 0;
  if (!std::exchange(ended_, true) && method != nullptr) method->OnGone();
  connection_->Forget(id_);
}

void H2Stream::Post(std::move_only_function<void()> task) {
  boost::asio::post(connection_->io(), [self = shared_from_this(), task = std::move(task),
                                        posted = Clock::now()]() mutable {
    self->connection_->context().delay.Note(Clock::now() - posted);
    task();
  });
}

Duration H2Stream::Way() const { return connection_->Way(); }

void H2Stream::Decode(std::function<void()> task) {
  connection_->context().decode->Add(
      head_.client, [self = shared_from_this(), task = std::move(task)](std::size_t) { task(); });
}

void H2Stream::Send(OutMessage message) {
  boost::asio::dispatch(connection_->io(), [self = shared_from_this(),
                                            message = std::move(message)]() mutable {
    H2Stream& s = *self;
    if (s.ended_ || s.closed_) return;
    if (s.out_size_ == 0) s.moved_ = Clock::now();
    const auto prefix = std::make_shared<const std::array<std::uint8_t, 5>>(PrefixOf(message.size));
    s.out_.push_back({std::as_bytes(std::span(*prefix)), prefix});
    for (OutMessage::Piece& piece : message.pieces) s.out_.push_back(std::move(piece));
    s.out_size_ += prefix->size() + message.size;
    H2Session& session = s.connection_->session();
    if (std::exchange(s.responded_, true)) {
      session.Resume(s.id_);
    } else {
      session.Respond(s.id_, s,
                      {{":status", "200"},
                       {"content-type", "application/grpc"},
                       {"grpc-accept-encoding", kCodings}},
                      false);
    }
    s.connection_->Pump();
  });
}

void H2Stream::End(CallEnd end) {
  boost::asio::dispatch(connection_->io(),
                        [self = shared_from_this(), end = std::move(end)]() mutable {
                          self->Finish(std::move(end));
                        });
}

void H2Stream::Finish(CallEnd end) {
  if (ended_ || closed_) return;
  ended_ = deaf_ = true;
  reader_ = {};
  held_ = {};
  bring_by_.reset();
  moved_ = Clock::now();
  end_ = std::move(end);
  end_.text = Percent(end_.text);
  code_ = std::to_string(end_.code);
  if (std::exchange(responded_, true)) {
    connection_->session().Resume(id_);
  } else {
    H2Session::Fields fields{{":status", "200"}, {"content-type", "application/grpc"}};
    const H2Session::Fields trailers = OutTrailers();
    fields.insert(fields.end(), trailers.begin(), trailers.end());
    connection_->session().Respond(id_, *this, fields, true);
  }
  connection_->Pump();
}

H2Session::Stream::Ready H2Stream::OutReady(std::size_t most) {
  const std::size_t size = std::min(out_size_, most);
  return {.size = size, .last = ended_ && size == out_size_};
}

void H2Stream::OutTake(std::size_t size, H2Output& out) {
  out_size_ -= size;
  moved_ = Clock::now();
  while (size > 0) {
    OutMessage::Piece& front = out_.front();
    const std::size_t n = std::min(size, front.bytes.size());
    out.Add(front.bytes.first(n), front.owner);
    front.bytes = front.bytes.subspan(n);
    size -= n;
    if (front.bytes.empty()) out_.pop_front();
  }
  if (out_size_ == 0 && !ended_) connection_->Drained(shared_from_this());
}

H2Session::Fields H2Stream::OutTrailers() {
  H2Session::Fields fields{{"grpc-status", code_}};
  if (!end_.text.empty()) fields.emplace_back("grpc-message", end_.text);
  for (const auto& [name, value] : end_.trailers) fields.emplace_back(name, value);
  return fields;
}

void H2Stream::OnSent() {
  if (const auto method = method_; method != nullptr && !ended_) method->OnSent();
}

void H2Stream::GiveUp(CallEnd end) {
  const auto method = method_;
  Finish(std::move(end));
  if (method != nullptr) method->OnGone();
}

void H2Stream::CheckTime(Clock::time_point now) {
  if (closed_) return;
  // Nothing else can come on the connection before the header's end.
  if (!headed_ && now - head_.arrived > connection_->context().options.handshake_timeout) {
    return connection_->Abort();
  }
  if (!ended_ && head_.deadline && now >= *head_.deadline) {
    return GiveUp(DeadlinePassed());
  }
  if (!ended_ && bring_by_ && now >= *bring_by_) {
    return GiveUp(
        EndOf(Fail(ErrorCode::kDeadlineExceeded, "the message did not arrive in time"), false));
  }
  // The client takes nothing of what is there for it.
  const bool goes_out = ended_ || out_size_ > 0;
  if (goes_out && now - moved_ > connection_->context().options.write_timeout) {
    connection_->session().Cancel(id_);
    connection_->Pump();
  }
}

void H2Stream::Expire() {
  if (ended_ || closed_) return;
  GiveUp(EndOf(Fail(ErrorCode::kUnavailable, "the server stopped before this call was answered"),
               false));
}

}  // namespace tactus
