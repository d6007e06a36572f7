// A node that takes steps of others: one connection. Whoever speaks over the network is behind this
// (grpc_peer.h); who is asked when, and what becomes of a call, is RoutedSteps' concern.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/expected.h"
#include "base/serving_time.h"
#include "service/infer_call.h"

namespace tactus {

// How a call at a peer ended.
struct PeerEnd {
  Expected<InferReply> reply;  // or why there is none, without the peer's name
  std::uint64_t bytes = 0;     // of the answer
  bool away = false;           // it was not reached, or was lost
  bool elsewhere = false;  // away, or it has not the model or no room: another may serve the call
};

class Peer {
 public:
  virtual ~Peer() = default;

  // `done` is called once, on any thread, also inside Send. `call` outlives that. What is returned
  // stops the call, which still ends; it may be called at any time, more than once.
  virtual std::function<void()> Send(const InferCall& call, Duration left,
                                     std::function<void(PeerEnd&&)> done) = 0;
  // Blocking, a few seconds at most: there and back with hardly any bytes.
  virtual Status Probe() = 0;
  // Blocking, a few seconds at most: what the model is to those who send it steps.
  virtual Expected<ModelSpec> Describe(const std::string& model) = 0;
};

// Connects when it is needed: nothing blocks.
using MakePeer =
    std::function<std::shared_ptr<Peer>(const std::string& node, const std::string& address)>;

}  // namespace tactus
