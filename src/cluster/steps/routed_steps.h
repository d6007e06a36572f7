// The steps of pipelines where the plan put them: a service over that of this process which sends a
// step's call to the node that its route names, and has its answer back. For EnsembleService
// (EnsembleOptions::runs_steps); calls that are of no step stay here, so no call goes on from the
// node to which it was sent.
//
//   RoutedSteps steps(runtime, options);
//   steps.Follow(routes);          // at each new plan
//
// Steps that are one call (StepGroup) go as one to a node, where the routes of all of them are
// alike and the node takes such calls; else they are run one by one, each by its own route.
//
// Each call has one reply. A peer that does not answer, does not have the model or has no room is
// passed over and the next target of the route gets the call, with the time that is left; where
// none is left, the reply says what each of them said. Calls under way go on when routes change.
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/steps/peer.h"
#include "fleet/worker_routes.h"
#include "service/forwarding_service.h"
#include "service/remote_step.h"
#include "service/step_group.h"

namespace tactus {

class RoutedSteps final : public ForwardingService {
 public:
  struct Options {
    MakePeer connect;  // grpc_peer.h
    std::function<void(const std::string&)> log = {};
  };

  // `local` outlives it, and so does whoever waits for a reply.
  RoutedSteps(InferenceService& local, Options options);
  // Cancels what is under way at peers and waits for the replies.
  ~RoutedSteps() override;

  void Follow(const WorkerRoutes& routes);

  // A model of this process, or one that a route sends elsewhere, as its node describes it:
  // kUnavailable until one has.
  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t version) const override;
  // A model that a route sends elsewhere is ready once its node has described it, and one that has
  // it answered the last call or probe (MeasureLinks).
  Status ModelReady(std::string_view model, std::int64_t version) const override;
  CallId Infer(InferCall&& call) override;
  void Cancel(CallId call) override;

  // The ways to the nodes of the routes: probes each of them, which may take seconds, and says what
  // calls and probes have shown of late.
  std::vector<MeasuredLink> MeasureLinks();

  // Where each step runs, as a text, empty where it is here or unknown: steps of one text have
  // routes that are alike. Another number at each Follow.
  std::vector<std::string> PlacesOf(std::string_view pipeline,
                                    const std::vector<StepGroup::Step>& steps) const;
  std::uint64_t places_number() const;

  // By pipeline, step and node.
  std::vector<RemoteStep> Remote() const;

  // Calls at peers, or that were.
  std::size_t underway() const;

 private:
  struct Body;
  // Finds a model that is not here as Find does; the error is `here` where no route has it.
  Expected<std::shared_ptr<const ModelSpec>> FindElsewhere(std::string_view model,
                                                           const Error& here) const;
  const std::unique_ptr<Body> body_;
};

}  // namespace tactus
