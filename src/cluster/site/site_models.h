// The models of a site as those of one node (docs/reference/cluster.md): of all that the site's
// workers serve those that were asked for, by Load, and in the very bytes that lie on the node's
// disk. Calls of these go to the site; of others it knows nothing. Thread-safe.
#pragma once

#include <functional>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "service/inference_service.h"

namespace tactus {

class SiteModels final : public InferenceService {
 public:
  struct Options {
    // The model as the site's workers serve it, also where it waits for the first that does; an
    // error says why there is none.
    std::function<Expected<ModelSpec>(const std::string& model)> await;
    // The digest of the model's folder on this node; an error where there is none.
    std::function<Expected<std::string>(const std::string& model)> digest_of;
  };

  // `site` runs them, and outlives this.
  SiteModels(InferenceService& site, Options options);

  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t version) const override;
  Status ModelReady(std::string_view model, std::int64_t version) const override;
  CallId Infer(InferCall&& call) override { return site_.Infer(std::move(call)); }
  void Cancel(CallId call) override { site_.Cancel(call); }
  bool Live() const override { return site_.Live(); }
  bool Ready() const override;
  std::vector<ModelState> Index() const override;
  // Blocks until a worker serves the model. An error where none does, or not all in the bytes that
  // this node has; a model that was loaded before serves on then. `config` has to be empty: the
  // workers have theirs.
  Status Load(const std::string& model, const std::string& config) override;
  Status Unload(const std::string& model) override;
  Expected<std::vector<ModelStatistics>> Statistics(std::string_view model,
                                                    std::int64_t version) const override;

 private:
  bool Holds(std::string_view model) const;

  InferenceService& site_;
  const Options options_;
  mutable std::shared_mutex mutex_;
  std::set<std::string, std::less<>> loaded_;  // under the mutex
};

}  // namespace tactus
