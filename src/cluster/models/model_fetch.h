// Brings a model to a node's disk: its manifest, then each file that is not there, checked against
// its digest before it has a name. What breaks off goes on where it was, also in a later life.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/expected.h"
#include "cluster/models/digest.h"
#include "cluster/models/model_store.h"

namespace tactus {

// Where blobs come from.
class BlobSource {
 public:
  using Take = std::function<Status(std::string_view)>;
  virtual ~BlobSource() = default;

  // Hands on the bytes from `offset` to the end, in their order; ends early with the error of
  // `take`. kUnavailable: what has come counts, and the rest may be had later. kNotFound: nobody
  // has it.
  virtual Status Read(const Digest& blob, std::uint64_t offset, const Take& take,
                      const std::stop_token& stop) = 0;
};

struct ModelFetchOptions {
  std::string node;                         // for errors
  std::function<void(std::uint64_t)> came;  // so many bytes more; empty: nobody counts
  std::function<void(const std::string&)> log;
  // Whether there is something else to do: then a source that is away is not waited for. Empty: no.
  std::function<bool()> busy;
  // Waits, or until the stop. For tests; empty: in real time.
  std::function<void(const std::stop_token&, std::chrono::milliseconds)> wait;
};

// Names under which the worker is to find folders, in the order of making them.
using ModelLinks = std::vector<std::pair<std::string, std::filesystem::path>>;

class ModelFetch {
 public:
  // All outlive it.
  ModelFetch(ModelStore& store, BlobSource& source, ModelFetchOptions options);

  // The model and what it needs. `wanted`: manifests of all models that stay on this disk. Waits
  // for a source that is away, until the stop (kCancelled) or while there is nothing else to do
  // (kUnavailable). Errors name node, model, file and both digests; what was wrong is not kept.
  Expected<ModelLinks> Fetch(const std::string& name, const Digest& digest,
                             const std::set<Digest>& wanted, const std::stop_token& stop);

 private:
  struct Item {  // what is being brought, for errors
    std::string model;
    std::string what;
  };
  Expected<Manifest> BringManifest(const std::string& name, const Digest& digest);
  Status BringBlob(const Item& item, const Digest& digest, std::uint64_t size);
  Status Add(const std::string& name, const Digest& digest, int depth, ModelLinks& links);
  // From `from` on, over all breaks.
  Status ReadAll(const Digest& digest, std::uint64_t from, const BlobSource::Take& take);
  std::unexpected<Error> Wrong(const Item& item, const Digest& is, const Digest& should) const;
  std::unexpected<Error> About(const Item& item, Error error) const;

  ModelStore& store_;
  BlobSource& source_;
  ModelFetchOptions options_;
  std::stop_token stop_;  // of the present Fetch, as what follows
  std::set<Digest> wanted_;
  std::set<std::pair<std::string, Digest>> done_;
  std::uint64_t bytes_ = 0;  // that have come
  int files_ = 0;
  std::string said_;  // of the source, since it last sent something
};

}  // namespace tactus
