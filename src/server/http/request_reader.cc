#include "server/http/request_reader.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <fmt/format.h>

#include "base/check.h"
#include "server/kserve/json_codec.h"
#include "server/kserve/objectives.h"
#include "server/kserve/time_headers.h"

namespace tactus {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using Parser = http::request_parser<http::buffer_body>;

// A body's memory starts with this much and grows with what arrives: a client that announces much
// and sends little holds little.
constexpr std::size_t kFirstBody = std::size_t{1} << 20;
// A buffer up to this size stays with its connection, so that its pages need not be mapped again
// for every request. It counts as held: a thousand idle connections must not spend the budget.
constexpr std::size_t kKeptBody = std::size_t{256} << 10;

// Memory of one body. Lent to the request; free again when the last who reads it lets go.
class BodyBuffer {
 public:
  using Taken = ByteBudget::Taken;

  // `budget` may be null.
  explicit BodyBuffer(std::shared_ptr<ByteBudget> budget) : budget_(std::move(budget)) {}
  ~BodyBuffer() {
    std::free(data_);
    if (budget_) budget_->Give(capacity_);
  }
  BodyBuffer(const BodyBuffer&) = delete;
  BodyBuffer& operator=(const BodyBuffer&) = delete;

  // Keeps the bytes. A large buffer grows without a copy, hence without being there twice.
  Taken Grow(std::size_t capacity) {
    const Taken taken = budget_ ? budget_->Take(capacity - capacity_) : Taken::kYes;
    if (taken != Taken::kYes) return taken;
    void* const grown = std::realloc(data_, capacity + kBodyPadding);
    if (grown == nullptr) {
      if (budget_) budget_->Give(capacity - capacity_);
      return Taken::kBeyondWhole;
    }
    data_ = static_cast<std::byte*>(grown);
    capacity_ = capacity;
    return taken;
  }

  std::byte* data() const { return data_; }
  std::size_t capacity() const { return capacity_; }
  const ByteBudget* budget() const { return budget_.get(); }
  // Release and acquire: who reads the bytes on another thread is done before they are overwritten.
  bool free() const { return !lent_.load(std::memory_order_acquire); }
  static std::shared_ptr<const void> Lend(std::shared_ptr<BodyBuffer> buffer) {
    buffer->lent_.store(true, std::memory_order_relaxed);
    const void* bytes = buffer->data();
    return {bytes, [buffer = std::move(buffer)](const void*) {
              buffer->lent_.store(false, std::memory_order_release);
            }};
  }

 private:
  const std::shared_ptr<ByteBudget> budget_;
  std::size_t capacity_ = 0;
  std::byte* data_ = nullptr;
  std::atomic<bool> lent_{false};
};

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

Verb VerbOf(http::verb verb) {
  switch (verb) {
    case http::verb::get:
      return Verb::kGet;
    case http::verb::head:
      return Verb::kHead;
    case http::verb::post:
      return Verb::kPost;
    case http::verb::delete_:
      return Verb::kDelete;
    default:
      return Verb::kOther;
  }
}

// Why nobody may serve this request; nothing where all is well. A request whose end two readers see
// in different places hides another one behind it, so all doubt about a body's length is an error.
std::optional<HttpResponse> FramingFault(const Parser& parser) {
  const auto& head = parser.get();
  if (head.version() >= 11 && head.count(http::field::host) != 1) {
    return ErrorResponse(400, "an HTTP/1.1 request needs one Host field");
  }
  const auto [first, last] = head.equal_range(http::field::transfer_encoding);
  if (first == last) return std::nullopt;
  if (!parser.chunked() || head.version() < 11) {
    return ErrorResponse(400, "a Transfer-Encoding that does not end in chunked has no end");
  }
  if (std::next(first) != last || !beast::iequals(first->value(), "chunked")) {
    return ErrorResponse(501, "of transfer codings only chunked is known");
  }
  return std::nullopt;
}

// Path and query of a target; what stands before them in absolute form, as for a proxy, is the
// server itself.
std::string_view OriginForm(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (target.size() < scheme.size()) continue;
    const std::string_view start = target.substr(0, scheme.size());
    if (!beast::iequals({start.data(), start.size()}, {scheme.data(), scheme.size()})) continue;
    const std::size_t path = target.find_first_of("/?", scheme.size());
    return path == target.npos ? "/" : target.substr(path);
  }
  return target;
}

Expected<TimeLimit> TimeLimitOf(const http::fields& head) {
  TimeLimit limit;
  for (const auto& field : head) {
    if (field.name() != http::field::unknown) continue;
    for (const std::string_view name : kTimeHeaders) {
      const beast::string_view given = field.name_string();
      if (given.size() != name.size() || !beast::iequals(given, {name.data(), name.size()})) {
        continue;
      }
      // A proxy may add its own to the client's: the shortest of them holds.
      if (Status read = ReadTimeHeader(name, View(field.value()), limit); !read) {
        return std::unexpected(std::move(read.error()));
      }
    }
  }
  return limit;
}

HttpResponse TooLongHead(std::string_view what) {
  return ErrorResponse(431, fmt::format("the request's {} larger than the server's limit", what));
}

HttpResponse FailureOf(const beast::error_code& error) {
  HttpResponse response;
  if (error == http::error::header_limit) {
    response = TooLongHead("head is");
  } else if (error == http::error::bad_version) {
    response = ErrorResponse(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
  } else {
    response = ErrorResponse(400, "malformed HTTP request: " + error.message());
  }
  response.close = true;
  return response;
}

}  // namespace

struct RequestReader::Body {
  Body(ReaderLimits limits_, HeadGate gate_)
      : limits(limits_),
        gate(std::move(gate_)),
        // What follows a head in one read is part of it; half a buffer is room to read on.
        capacity(std::max<std::size_t>(limits_.head * 2, 4096)),
        buffer(std::make_unique_for_overwrite<char[]>(capacity)) {
    Begin();
  }

  ReaderLimits limits;
  HeadGate gate;
  std::shared_ptr<ByteBudget> budget;  // of the request; null: no limit

  // Bytes read and not yet taken: [begin, end).
  std::size_t capacity;
  std::unique_ptr<char[]> buffer;
  std::size_t begin = 0;
  std::size_t end = 0;

  std::optional<Parser> parser;
  State state = State::kHead;
  bool touched = false;  // bytes of this request have been parsed
  bool blank = false;    // an empty line before it was skipped
  bool expects_continue = false;
  bool takes_interim = false;
  bool keep_alive = false;
  bool skips = false;  // the body
  std::shared_ptr<BodyBuffer> body;
  std::size_t body_size = 0;                 // received so far
  std::optional<std::size_t> body_expected;  // empty: chunked
  HttpRequest request;
  HttpResponse failure;

  void Begin();
  State Fail(HttpResponse response);
  State Parse();
  State ParseHead();
  bool SkipBlank();
  State OnHead();
  State CopyKnownBody();
  State ParseChunks();
  State OnWhole();
  // False when there is no room, and `state` says so.
  bool Ensure(std::size_t capacity_wanted);
  State TooLarge();
  State OutOfMemory(ByteBudget::Taken taken);
  void Compact();
};

void RequestReader::Body::Begin() {
  parser.emplace();
  parser->header_limit(static_cast<std::uint32_t>(limits.head));
  parser->body_limit(boost::none);  // checked here, to answer before anything is read
  state = State::kHead;
  touched = blank = false;
  expects_continue = false;
  skips = false;
  body_size = 0;
  body_expected.reset();
  request = {};
}

RequestReader::State RequestReader::Body::Fail(HttpResponse response) {
  failure = std::move(response);
  failure.close = true;
  return state = State::kFailed;
}

RequestReader::State RequestReader::Body::TooLarge() {
  std::string text =
      "the request's body is larger than the limit of " + std::to_string(limits.body) + " bytes";
  if (limits.body > 0) {
    text +=
        "; send less, or raise the server's --max-body-mb, --pending-mb or mb of "
        "--client-limits";
  }
  return Fail(ErrorResponse(413, text));
}

RequestReader::State RequestReader::Body::OutOfMemory(ByteBudget::Taken taken) {
  return Fail(OverBudgetResponse(taken));
}

void RequestReader::Body::Compact() {
  std::memmove(buffer.get(), buffer.get() + begin, end - begin);
  end -= begin;
  begin = 0;
}

// Room for `wanted` bytes of body.
bool RequestReader::Body::Ensure(std::size_t wanted) {
  // The last request's buffer may still be read, or have been another client's.
  const bool mine = body && body->free() && body->budget() == budget.get();
  if (!mine) body = std::make_shared<BodyBuffer>(budget);
  if (body->capacity() >= wanted) return true;
  const ByteBudget::Taken taken = body->Grow(wanted);
  if (taken == ByteBudget::Taken::kYes) return true;
  OutOfMemory(taken);
  return false;
}

RequestReader::State RequestReader::Body::Parse() {
  if (state == State::kHead && ParseHead() != State::kBody) return state;
  if (state != State::kBody) return state;
  return body_expected ? CopyKnownBody() : ParseChunks();
}

// An empty line before a request, which some clients send after a body (RFC 9112, 2.2). False: its
// end has not come yet.
bool RequestReader::Body::SkipBlank() {
  if (touched || blank || buffer[begin] != '\r') return true;
  if (end - begin < 2) return false;
  if (buffer[begin + 1] == '\n') begin += 2;
  blank = true;
  return true;
}

RequestReader::State RequestReader::Body::ParseHead() {
  if (begin < end && !SkipBlank()) return state;
  while (begin < end) {
    beast::error_code error;
    touched = true;
    const std::size_t used =
        parser->put(boost::asio::const_buffer(buffer.get() + begin, end - begin), error);
    begin += used;
    if (error == http::error::need_more) {
      if (begin == end) begin = end = 0;
      return state;
    }
    if (error) return Fail(FailureOf(error));
    if (parser->is_header_done()) return OnHead();
  }
  return state;
}

RequestReader::State RequestReader::Body::OnHead() {
  const auto& head = parser->get();
  keep_alive = head.keep_alive();
  takes_interim = head.version() >= 11;
  if (auto fault = FramingFault(*parser)) return Fail(std::move(*fault));
  if (const auto expect = head.find(http::field::expect); expect != head.end()) {
    if (!beast::iequals(expect->value(), "100-continue")) {
      return Fail(ErrorResponse(417, "only 'Expect: 100-continue' can be met"));
    }
    expects_continue = takes_interim;
  }
  state = State::kBody;
  if (!parser->chunked()) {
    const auto length = parser->content_length();
    if (length && *length > limits.body) return TooLarge();
    body_expected = length ? static_cast<std::size_t>(*length) : 0;
  }
  request.limit = TimeLimitOf(head);
  if (!gate) return state;
  auto admitted = gate({.verb = VerbOf(head.method()),
                        .target = OriginForm(View(head.target())),
                        .authorization = View(head[http::field::authorization]),
                        .host = View(head[http::field::host]),
                        .origin = View(head[http::field::origin]),
                        .length = body_expected,
                        .limit = request.limit ? request.limit->shortest() : std::nullopt,
                        .waits = expects_continue});
  if (!admitted) return Fail(std::move(admitted.error()));
  budget = std::move(admitted->budget);
  skips = admitted->skips && body_expected.has_value();
  return state;
}

RequestReader::State RequestReader::Body::CopyKnownBody() {
  const std::size_t expected = *body_expected;
  if (skips) {
    const std::size_t n = std::min(end - begin, expected - body_size);
    begin += n;
    body_size += n;
    return body_size == expected ? OnWhole() : state;
  }
  if (expected > 0 && body_size == 0 && !Ensure(std::min(expected, kFirstBody))) return state;
  while (begin < end && body_size < expected) {
    if (body_size == body->capacity() && !Ensure(std::min(expected, body_size * 2))) return state;
    const std::size_t n =
        std::min({end - begin, expected - body_size, body->capacity() - body_size});
    std::memcpy(body->data() + body_size, buffer.get() + begin, n);
    begin += n;
    body_size += n;
  }
  return body_size == expected ? OnWhole() : state;
}

RequestReader::State RequestReader::Body::ParseChunks() {
  for (;;) {
    if (body_size == 0 || body_size == body->capacity()) {
      // One byte past the limit is enough to know that it is passed.
      const std::size_t wanted = std::min(std::max(kFirstBody, body_size * 2), limits.body + 1);
      if (!Ensure(wanted)) return state;
    }
    auto& space = parser->get().body();
    space.data = body->data() + body_size;
    space.size = body->capacity() - body_size;
    const std::size_t room = space.size;
    beast::error_code error;
    const std::size_t used =
        parser->put(boost::asio::const_buffer(buffer.get() + begin, end - begin), error);
    begin += used;
    body_size += room - space.size;
    if (body_size > limits.body) return TooLarge();
    if (error && error != http::error::need_more && error != http::error::need_buffer) {
      return Fail(FailureOf(error));
    }
    if (parser->is_done()) return OnWhole();
    if (error == http::error::need_more || (used == 0 && body_size < body->capacity())) {
      if (begin == 0 && end == capacity) return Fail(TooLongHead("trailers are"));
      return state;
    }
  }
}

RequestReader::State RequestReader::Body::OnWhole() {
  const auto& head = parser->get();
  const auto optional = [&](beast::string_view name) -> std::optional<std::string_view> {
    const auto field = head.find(name);
    if (field == head.end()) return std::nullopt;
    return View(field->value());
  };
  request.verb = VerbOf(head.method());
  request.target = OriginForm(View(head.target()));
  request.content_encoding = View(head[http::field::content_encoding]);
  request.accept_encoding = View(head[http::field::accept_encoding]);
  request.objective = View(head[{kObjectiveHeader.data(), kObjectiveHeader.size()}]);
  request.trace_parent = View(head[{kTraceParentHeader.data(), kTraceParentHeader.size()}]);
  request.inference_header_length = optional("Inference-Header-Content-Length");
  if (body_size > 0 && !skips) {
    request.body = {body->data(), body_size};
    request.body_owner = BodyBuffer::Lend(body);
    request.budget = budget;
    if (body->capacity() > kKeptBody) body.reset();
  }
  return state = State::kWhole;
}

RequestReader::RequestReader(ReaderLimits limits, HeadGate gate)
    : body_(std::make_unique<Body>(limits, std::move(gate))) {}
RequestReader::~RequestReader() = default;

std::span<char> RequestReader::Space() {
  Body& b = *body_;
  if (b.state == State::kFailed) return {b.buffer.get(), b.capacity};  // read to be thrown away
  if (b.state == State::kBody && b.body_expected) {
    CHECK(b.begin == b.end, "bytes of the body were left in the head's buffer");
    b.begin = b.end = 0;
    if (b.skips) return {b.buffer.get(), std::min(b.capacity, *b.body_expected - b.body_size)};
    if (b.body_size < b.body->capacity() || b.Ensure(std::min(*b.body_expected, b.body_size * 2))) {
      const std::size_t room = std::min(b.body->capacity(), *b.body_expected) - b.body_size;
      return {reinterpret_cast<char*>(b.body->data() + b.body_size), room};
    }
    return {b.buffer.get(), b.capacity};
  }
  if (b.begin > 0) b.Compact();
  return {b.buffer.get() + b.end, b.capacity - b.end};
}

RequestReader::State RequestReader::Commit(std::size_t n) {
  Body& b = *body_;
  if (b.state == State::kFailed) return b.state;
  if (b.state == State::kBody && b.body_expected) {
    b.body_size += n;
    return b.body_size == *b.body_expected ? b.OnWhole() : b.state;
  }
  b.end += n;
  return b.state == State::kWhole ? b.state : b.Parse();
}

RequestReader::State RequestReader::Next() {
  CHECK(body_->state == State::kWhole, "the request is not whole");
  body_->Begin();
  return body_->Parse();
}

RequestReader::State RequestReader::state() const { return body_->state; }

bool RequestReader::skips() const {
  return body_->skips && body_->state == State::kBody && body_->body_expected;
}

std::size_t RequestReader::missing() const {
  const bool known = body_->state == State::kBody && body_->body_expected;
  return known ? *body_->body_expected - body_->body_size : 0;
}

bool RequestReader::idle() const {
  return body_->state == State::kHead && !body_->touched && body_->begin == body_->end;
}

bool RequestReader::TakeContinue() {
  return body_->state == State::kBody && std::exchange(body_->expects_continue, false);
}

HttpRequest& RequestReader::request() { return body_->request; }
bool RequestReader::takes_interim() const { return body_->takes_interim; }
bool RequestReader::keep_alive() const { return body_->keep_alive; }
const HttpResponse& RequestReader::failure() const { return body_->failure; }

}  // namespace tactus
