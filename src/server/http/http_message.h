// A request and a response as values, without sockets or a parser.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/expected.h"
#include "server/access/byte_budget.h"
#include "server/access/scope.h"
#include "server/kserve/body_admission.h"
#include "server/kserve/compression.h"
#include "service/deadline.h"
#include "service/infer_call.h"
#include "service/refusal.h"

namespace tactus {

enum class Verb { kGet, kHead, kPost, kDelete, kOther };

// Views into the connection's memory: good until Handle returns, but for the body, which lives as
// long as `body_owner`.
struct HttpRequest {
  Verb verb = Verb::kOther;
  std::string_view target;            // path and query as sent
  std::string_view content_encoding;  // fields that are absent are empty
  std::string_view accept_encoding;
  std::string_view objective;     // kObjectiveHeader
  std::string_view trace_parent;  // kTraceParentHeader
  std::string_view client;        // as limits know it
  std::optional<std::string_view> inference_header_length;
  Expected<TimeLimit> limit;  // of kTimeHeaders together; the first that makes no sense
  std::span<const std::byte> body;
  std::shared_ptr<const void> body_owner;
  // The budget that counts the body, and what it expands to; null: no limit.
  std::shared_ptr<ByteBudget> budget;
  std::chrono::steady_clock::time_point received;  // when its first bytes were
  Duration way{};  // how long it and its answer wait for the I/O thread
  std::shared_ptr<BodyAdmission::Place> place;  // of its body; null: it has none
  std::optional<Error> unread;                  // why the body was thrown away
};

// What follows a response's body piece by piece until the end: events, pictures.
class LongBody {
 public:
  virtual ~LongBody() = default;
  // `ready` is called once, inside Next or later, on any thread; an empty piece is the end. The
  // next piece is asked for when this one is out, so that a slow client is waited for by nobody.
  virtual void Next(std::move_only_function<void(std::string piece)> ready) = 0;
  // The client is gone or the server stops: what was asked for need not come. Drops `ready`.
  virtual void Leave() = 0;
};

struct HttpResponse {
  int status = 200;
  std::string_view content_type = "application/json";
  std::string fields;  // further header fields, each with its CRLF
  std::string body;
  std::vector<std::span<const std::byte>> parts;  // follow the body
  std::shared_ptr<const void> storage;            // owns what `parts` point to
  std::shared_ptr<const void> lease;              // kept until the response is out; null: nothing
  bool close = false;                             // the connection ends with this response
  std::shared_ptr<LongBody> rest;                 // goes out after `parts`; its end is the close
};

HttpResponse ErrorResponse(int status, std::string_view text);
// Of a response that says what is wrong with a body.
RefusalReason ReasonOf(const HttpResponse& response);
// For a request whose bytes do not fit (not kYes): 429 or 503, and when to try again.
HttpResponse OverBudgetResponse(ByteBudget::Taken taken);

// Bytes of body and parts together.
std::size_t SizeOf(const HttpResponse& response);
// Body and parts together, where they are large enough to gain by it.
void Compress(Coding coding, HttpResponse& response);

// Status line and header fields, empty line included. `keep_alive` is what the connection will do.
std::string ResponseHead(const HttpResponse& response, bool keep_alive);

// The connection's side of one request.
class Exchange {
 public:
  virtual ~Exchange() = default;
  // Exactly once, from any thread. `make` runs on the connection's I/O thread, or never if the
  // client is gone.
  virtual void Answer(std::move_only_function<HttpResponse()> make) = 0;
  // The same, where `make` takes long: it runs where heavy requests are read.
  virtual void AnswerHeavy(std::move_only_function<HttpResponse()> make) {
    Answer(std::move(make));
  }
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // What a client must be allowed in order to send a request to this target.
  virtual Scope Needs(Verb verb, std::string_view target) const = 0;
  // Whether the body of this request, of so many bytes, is read: as BodyAdmission::Enter.
  virtual Expected<std::shared_ptr<BodyAdmission::Place>> EnterBody(std::string_view /*target*/,
                                                                    std::size_t /*bytes*/,
                                                                    std::optional<Duration>) {
    return nullptr;
  }
  // Must not block. Answers through `exchange`, at once or later. `thread` numbers the I/O thread
  // that calls. A call that is under way in the service is returned, for Cancel.
  virtual std::optional<CallId> Handle(const HttpRequest& request, std::size_t thread,
                                       std::shared_ptr<Exchange> exchange) = 0;
  // The client is gone; the answer is still given.
  virtual void Cancel(CallId call) = 0;
  // No new requests will be handled; waits for work of the handler's own.
  virtual void Stop() {}
  // What waits for a thread of its own is refused from now on. Returns at once.
  virtual void Refuse() {}
};

}  // namespace tactus
