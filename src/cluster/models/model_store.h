// The models on a node's disk. In the agent's folder of state:
//   models/NAME            the worker's repository: links to folders of the cache, or of the node's
//                          own repository
//   cache/manifests/DIGEST what a model consists of; its time says when it was used last
//   cache/blobs/DIGEST     files by their digests, DIGEST.part while they come
//   cache/trees/DIGEST/    a model's folder; its files are the blobs (hard links)
// Everything has its name once it is whole and on the disk. One thread at a time, but for what says
// otherwise.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/expected.h"
#include "cluster/models/digest.h"
#include "cluster/models/make_room.h"
#include "cluster/models/manifest.h"

namespace tactus {

struct ModelStoreOptions {
  std::filesystem::path state;                // the agent's folder
  std::filesystem::path own;                  // the node's own repository; empty: it has none
  std::uint64_t most_bytes = 32'000'000'000;  // of blobs
};

class ModelStore {
 public:
  // Makes the folders.
  static Expected<ModelStore> Open(ModelStoreOptions options);

  std::filesystem::path repository() const { return options_.state / "models"; }
  std::filesystem::path BlobPath(const Digest& blob) const;

  // Nothing: it is not there, or is another's bytes, and then it is removed.
  std::optional<Manifest> FindManifest(const Digest& manifest) const;
  // Any thread. The names that lie beside these models because they need them.
  std::set<std::string> NeededBy(const std::set<std::string>& digests) const;
  Status KeepManifest(const Digest& manifest, std::string_view text) const;
  // Whether it is there, whole. Once in a life its bytes are read; those that are not of the digest
  // are removed.
  bool HasBlob(const Digest& blob);
  // Its bytes were checked while they were written.
  void NoteBlob(const Digest& blob) { checked_.insert(blob); }

  // Removes what nobody wants so that these fit in; kResourceExhausted where they do not, or the
  // disk has no room for them. `wanted`: manifests, with what they need.
  Status MakeRoomFor(const std::vector<Manifest::File>& coming, const std::set<Digest>& wanted);
  // The model's folder in the node's own repository, if it holds these files and no others: reads
  // them.
  std::optional<std::filesystem::path> OwnFolder(const std::string& name,
                                                 const Manifest& manifest) const;
  // Its folder in the cache. All its blobs have to be there.
  Expected<std::filesystem::path> Tree(const Digest& digest, const Manifest& manifest) const;

  // Any thread. The worker finds the folder under that name from now on.
  Status Link(const std::string& name, const std::filesystem::path& folder) const;
  // Any thread. The models of the node's own repository where none of the cache has the name;
  // `name` in any case.
  Status LinkOwn(const std::string& name = {}) const;

 private:
  explicit ModelStore(ModelStoreOptions options) : options_(std::move(options)) {}
  std::filesystem::path CacheFolder(const char* kind) const {
    return options_.state / "cache" / kind;
  }
  CacheContent Content(const std::set<Digest>& wanted) const;
  Status LinkNow(const std::string& name, const std::filesystem::path& folder) const;
  Status MakeTree(const std::filesystem::path& tree, const Manifest& manifest) const;

  ModelStoreOptions options_;
  std::set<Digest> checked_;
  std::unique_ptr<std::mutex> linking_ = std::make_unique<std::mutex>();
};

}  // namespace tactus
