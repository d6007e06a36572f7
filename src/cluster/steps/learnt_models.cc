// What models of other nodes look like: asked for in the background, by those whose routes need it.
#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "cluster/steps/routed_steps_body.h"
#include "service/same_tensors.h"

namespace tactus {
namespace {

constexpr auto kAskAgain = std::chrono::milliseconds(200);

bool SameModel(const ModelSpec& a, const ModelSpec& b) {
  return a.max_batch == b.max_batch && SameTensors(a.inputs, b.inputs) &&
         SameTensors(a.outputs, b.outputs);
}

}  // namespace

// Asks the nodes what the models look like that routes send there, until each is known.
void RoutedSteps::Body::Learn(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<std::pair<std::string, std::shared_ptr<PeerNode>>> questions;
    {
      std::unique_lock lock(mutex);
      asked.wait(lock, stop, [this] { return !unknown.empty(); });
      std::map<std::string, std::string, std::less<>> left;
      for (const auto& route : *routes) {
        const auto why = unknown.find(route->model);
        if (why == unknown.end()) continue;
        left.insert(*why);
        for (const StepTarget& to : route->targets) {
          if (to.peer != nullptr) questions.emplace_back(route->model, to.peer);
        }
      }
      unknown = std::move(left);  // of routes that still hold
    }
    bool failed = false;
    for (const auto& [model, peer] : questions) {
      {
        const std::scoped_lock lock(mutex);
        if (stop.stop_requested() || !unknown.contains(model)) continue;
      }
      auto spec = peer->peer->Describe(model);
      const std::scoped_lock lock(mutex);
      if (!spec) {
        failed = true;
        unknown[model] = peer->text() + ": " + spec.error().message;
        continue;
      }
      std::shared_ptr<const ModelSpec>& known = specs[model];
      if (known == nullptr || !SameModel(*known, *spec)) {
        known = std::make_shared<const ModelSpec>(*std::move(spec));
      }
      unknown.erase(model);
    }
    if (!failed) continue;
    std::unique_lock lock(mutex);
    asked.wait_for(lock, stop, kAskAgain, [] { return false; });
  }
}

}  // namespace tactus
