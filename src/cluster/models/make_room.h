// What goes from a bounded cache of models so that another fits in: first what belongs to none,
// then the models that nobody wants, the one first that was not used for longest.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/expected.h"
#include "cluster/models/digest.h"

namespace tactus {

struct CachedModel {
  Digest manifest;
  std::int64_t used = 0;      // when it was last; later is more
  std::vector<Digest> blobs;  // of its files
  bool wanted = false;        // by a plan: it stays
};

struct CacheContent {
  std::vector<CachedModel> models;
  std::map<Digest, std::uint64_t> blobs;  // bytes of each that is there, whole or in part
  // What is to come, and what of it is there stays.
  std::set<Digest> coming;
  std::uint64_t more = 0;  // bytes of it that are not there
};

struct Eviction {
  std::vector<Digest> models;
  std::vector<Digest> blobs;
};

// kResourceExhausted: what is wanted does not fit into `most` bytes.
Expected<Eviction> MakeRoom(const CacheContent& content, std::uint64_t most);

}  // namespace tactus
