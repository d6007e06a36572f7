// Requests out of a stream of bytes: HTTP/1.1 heads and bodies, without sockets or a clock.
//
//   while (state != kWhole) state = reader.Commit(Read(socket, reader.Space()));
//   ... reader.request() ...
//   state = reader.Next();       // pipelined requests follow without a read
#pragma once

#include <cstddef>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "server/access/byte_budget.h"
#include "server/http/http_message.h"

namespace tactus {

struct ReaderLimits {
  std::size_t head = std::size_t{16} << 10;
  std::size_t body = std::size_t{64} << 20;
};

// What is known of a request before its body comes. Views, good during the call.
struct RequestHead {
  Verb verb = Verb::kOther;
  std::string_view target;
  std::string_view authorization;     // empty where absent
  std::string_view host, origin;      // likewise
  std::optional<std::size_t> length;  // of the body; nothing where it comes in chunks
  std::optional<Duration> limit;      // the shortest that its fields state
  bool waits = false;                 // its body comes once "100 Continue" is said
};
struct AdmittedHead {
  std::shared_ptr<ByteBudget> budget;  // what the body's bytes are taken of
  bool skips = false;  // a body whose length is known is thrown away as it comes: it is empty
};
// Or the answer that refuses the request: its body is not read, and the connection ends.
using HeadGate = std::function<std::expected<AdmittedHead, HttpResponse>(const RequestHead&)>;

class RequestReader {
 public:
  enum class State {
    kHead,    // waits for a head, or for more of one
    kBody,    // has the head, waits for more of the body
    kWhole,   // request() is complete
    kFailed,  // failure() says what to answer; nothing more can be read
  };

  // Without a gate every request may come, and nothing limits the bytes of all together. A budget
  // is shared with the buffers lent out.
  explicit RequestReader(ReaderLimits limits, HeadGate gate = {});
  ~RequestReader();

  // Where the next bytes go; never empty but when a whole request waits and its successors fill the
  // buffer. Body bytes go straight to their place.
  std::span<char> Space();
  // `n` bytes were written there.
  State Commit(std::size_t n);
  // Lets go of the whole request and starts on the next.
  State Next();

  State state() const;
  // Bytes of the body that are still to come; 0 where its length is not known beforehand.
  std::size_t missing() const;
  // The next bytes are of a body that is thrown away: nobody looks at what is written to Space().
  bool skips() const;
  // Nothing of a request has come yet.
  bool idle() const;
  // The client waits for "100 Continue" before it sends the body. True once for each request.
  bool TakeContinue();

  HttpRequest& request();  // kWhole
  // Whether its client understands answers before the answer (HTTP/1.1).
  bool takes_interim() const;
  bool keep_alive() const;  // of the whole request
  const HttpResponse& failure() const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace tactus
