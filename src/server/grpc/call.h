// One gRPC call: what its method sees of the connection, and what the connection sees of the
// method. Everything here happens on the connection's I/O thread, but for what says otherwise.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/expected.h"
#include "base/serving_time.h"
#include "server/kserve/compression.h"
#include "service/trace_parent.h"

namespace tactus {

// What a call says before its messages.
struct CallHead {
  using Clock = std::chrono::steady_clock;

  std::string path;
  std::string client;                         // as limits know it: a token's name, or the address
  Clock::time_point arrived;                  // of the header; the deadline counts from here
  std::optional<Clock::time_point> deadline;  // grpc-timeout
  std::vector<std::pair<std::string_view, std::string>> times;  // the others of kTimeHeaders
  std::string objective;                                        // kObjectiveHeader
  std::optional<TraceParent> trace_parent;
  Coding coding = Coding::kIdentity;  // of packed messages

  // Below 0 once it has passed; nothing where the client set none.
  std::optional<Duration> TimeLeft() const;
};

// A message that came, maybe packed as the head says.
struct Message {
  std::chrono::steady_clock::time_point begun;  // when its length was there
  std::shared_ptr<const std::byte[]> data;
  std::size_t size = 0;
  bool packed = false;

  std::span<const std::byte> bytes() const { return {data.get(), size}; }
};

// A message that goes out: pieces in order, each with what keeps its bytes alive.
struct OutMessage {
  struct Piece {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };
  std::vector<Piece> pieces;
  std::size_t size = 0;

  void Add(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
  void Add(std::string text);
};

// How a call ends: grpc-status, grpc-message and what else its trailers say.
struct CallEnd {
  int code = 0;  // of gRPC's status codes
  std::string text;
  std::vector<std::pair<std::string, std::string>> trailers;
};
// `error` in the shared table's words; what is worth repeating says so in its trailers.
CallEnd EndOf(const Status& status, bool strict_triton);
// Its frame is cut off or wrong, or it never came.
Error NoWholeMessage();
// In the words for which clients of gRPC look.
CallEnd DeadlinePassed();

// The connection's side. Whoever holds it after the call has ended speaks to nobody.
class ServerCall {
 public:
  virtual ~ServerCall() = default;

  const CallHead& head() const { return head_; }
  // On the I/O thread, or else it goes there: a message out, in order; the end, after which nothing
  // goes out. The first end counts.
  virtual void Send(OutMessage message) = 0;
  virtual void End(CallEnd end) = 0;
  // The method takes messages again (CallMethod::Takes).
  virtual void ReadOn() = 0;
  // From any thread: runs the task on the I/O thread later, or where heavy requests are read. Both
  // also where the call has ended by then.
  virtual void Post(std::move_only_function<void()> task) = 0;
  virtual void Decode(std::function<void()> task) = 0;
  // How long a call and its answer wait for the I/O thread.
  virtual Duration Way() const = 0;

 protected:
  CallHead head_;
};

// The method's side: one object for each call.
class CallMethod {
 public:
  virtual ~CallMethod() = default;

  // The head is there. May end the call.
  virtual void OnBegin() {}
  // A message of `size` bytes begins, of which `first` have come already, none where it is packed:
  // whether the rest may come. kEnd: the method has ended the call, or will.
  enum class Admission { kRead, kSkip, kEnd };
  virtual Admission Admit(std::size_t size, std::span<const std::byte> first) = 0;
  // `data` is null where it was skipped.
  virtual void OnMessage(Message message) = 0;
  // Whether the next message may be read; where not, the method says ReadOn later.
  virtual bool Takes() const { return true; }
  // The client has no more messages; `cut`: but for the one that it has begun.
  virtual void OnNoMore(bool cut) = 0;
  // What was sent so far is on its way.
  virtual void OnSent() {}
  // The client or its connection is gone, or the deadline has passed: nobody hears what the method
  // says from now on. Not called where the method has ended the call.
  virtual void OnGone() {}
};

// How calls of one path are served.
struct RpcMethod {
  std::size_t most_bytes = 0;  // of a message
  bool waits = false;          // a client may stay silent in it for as long as it likes
  bool idles = false;          // it only waits for news: such a call holds no place against others
  std::function<std::shared_ptr<CallMethod>(std::shared_ptr<ServerCall>)> begin;
};
using RpcMethods = std::map<std::string, RpcMethod, std::less<>>;  // by path

}  // namespace tactus
