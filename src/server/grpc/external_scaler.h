// KEDA's external scaler: tells Kubernetes how many lanes this server should have, of those it has.
#pragma once

#include <mutex>
#include <set>

#include "external_scaler.grpc.pb.h"
#include "server/autoscale/load_sampler.h"

namespace tactus {

class ActiveStream;

// One metric tells how far to scale, tactus_autoscale_advice_lanes with the server's own lanes as
// its target: their quotient is what the replicas have to be multiplied by (metricType: Value). The
// ratios that it follows from can be asked for too. What the ScaledObject says in its metadata is
// KEDA's and plays no part.
class ExternalScalerRpcs final : public externalscaler::ExternalScaler::CallbackService {
 public:
  // `sampler` outlives this, and is followed by it. Null: there is no advice, and every call is
  // UNIMPLEMENTED and told how to get some.
  explicit ExternalScalerRpcs(LoadSampler* sampler);
  ~ExternalScalerRpcs() override;

  // Ends all streams, and those that come later at once: Unavailable. A server that shuts down
  // waits for its streams, and these would not end by themselves.
  void EndStreams();

  grpc::ServerUnaryReactor* IsActive(grpc::CallbackServerContext* context,
                                     const externalscaler::ScaledObjectRef* request,
                                     externalscaler::IsActiveResponse* response) override;
  grpc::ServerWriteReactor<externalscaler::IsActiveResponse>* StreamIsActive(
      grpc::CallbackServerContext* context,
      const externalscaler::ScaledObjectRef* request) override;
  grpc::ServerUnaryReactor* GetMetricSpec(grpc::CallbackServerContext* context,
                                          const externalscaler::ScaledObjectRef* request,
                                          externalscaler::GetMetricSpecResponse* response) override;
  grpc::ServerUnaryReactor* GetMetrics(grpc::CallbackServerContext* context,
                                       const externalscaler::GetMetricsRequest* request,
                                       externalscaler::GetMetricsResponse* response) override;

 private:
  friend class ActiveStream;
  void TellAll(bool active);
  void Forget(ActiveStream* stream);

  LoadSampler* const sampler_;
  std::mutex mutex_;
  std::set<ActiveStream*> streams_;  // each until its OnDone
  bool ended_ = false;
};

}  // namespace tactus
