// Requests out of a stream of bytes: HTTP/1.1 heads and bodies, without sockets or a clock.
//
//   while (state != kWhole) state = reader.Commit(Read(socket, reader.Space()));
//   ... reader.request() ...
//   state = reader.Next();       // pipelined requests follow without a read
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "server/http/http_message.h"

namespace tactus {

// Bytes of bodies in memory, of all connections together.
class BodyBudget {
 public:
  explicit BodyBudget(std::size_t limit) : limit_(limit) {}
  bool Take(std::size_t bytes) {
    if (used_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= limit_) return true;
    Give(bytes);
    return false;
  }
  void Give(std::size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  std::size_t limit_;
  std::atomic<std::size_t> used_{0};
};

struct ReaderLimits {
  std::size_t head = std::size_t{16} << 10;
  std::size_t body = std::size_t{64} << 20;
};

class RequestReader {
 public:
  enum class State {
    kHead,    // waits for a head, or for more of one
    kBody,    // has the head, waits for more of the body
    kWhole,   // request() is complete
    kFailed,  // failure() says what to answer; nothing more can be read
  };

  // `budget` may be null: no limit. It is shared with the buffers lent out.
  RequestReader(ReaderLimits limits, std::shared_ptr<BodyBudget> budget);
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
  // Nothing of a request has come yet.
  bool idle() const;
  // The client waits for "100 Continue" before it sends the body. True once for each request.
  bool TakeContinue();

  HttpRequest& request();   // kWhole
  bool keep_alive() const;  // of the whole request
  const HttpResponse& failure() const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace tactus
