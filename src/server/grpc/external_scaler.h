// KEDA's external scaler: tells Kubernetes how many lanes this server should have, of those it has.
#pragma once

#include "server/autoscale/load_sampler.h"
#include "server/grpc/call.h"
#include "server/grpc/call_gate.h"
#include "server/grpc/state_board.h"

namespace tactus {

// One metric tells how far to scale, tactus_autoscale_advice_lanes with the server's own lanes as
// its target: their quotient is what the replicas have to be multiplied by (metricType: Value). The
// ratios that it follows from can be asked for too. What the ScaledObject says in its metadata is
// KEDA's and plays no part.
class ExternalScalerRpcs {
 public:
  // `sampler` outlives this, and is followed by it. Null: there is no advice, and every call is
  // UNIMPLEMENTED and told how to get some.
  explicit ExternalScalerRpcs(LoadSampler* sampler);
  ~ExternalScalerRpcs();

  void AddTo(RpcMethods& methods, const CallGate& gate) const;
  // Ends all streams, and those that come later at once: Unavailable. They would not end by
  // themselves.
  void EndStreams();

 private:
  LoadSampler* const sampler_;
  StateBoard active_;
};

}  // namespace tactus
