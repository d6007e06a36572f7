// Traces of the calls that come through it to another service, as TraceSettings chooses them.
#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include "server/kserve/trace.h"
#include "server/kserve/trace_settings.h"
#include "service/forwarding_service.h"

namespace tactus {

// Steps that other nodes send are passed on untraced: a client's call is traced where it came.
class TracedService final : public ForwardingService {
 public:
  using Clock = std::function<Trace::Instant()>;

  // All outlive this, and this outlives the replies. `clock`: of InferCall::received.
  TracedService(InferenceService& service, TraceSettings& settings, TraceSink& sink,
                Clock clock = std::chrono::steady_clock::now)
      : ForwardingService(service), settings_(settings), sink_(sink), clock_(std::move(clock)) {}

  CallId Infer(InferCall&& call) override;

 private:
  TraceSettings& settings_;
  TraceSink& sink_;
  const Clock clock_;
};

}  // namespace tactus
