#include "cluster/models/make_room.h"

#include <algorithm>
#include <string>
#include <tuple>

namespace tactus {
namespace {

std::string Megabytes(std::uint64_t bytes) {
  constexpr std::uint64_t kMb = 1'000'000;
  return std::to_string((bytes + kMb - 1) / kMb) + " MB";
}

}  // namespace

Expected<Eviction> MakeRoom(const CacheContent& content, std::uint64_t most) {
  Eviction gone;
  std::uint64_t total = content.more;
  for (const auto& [digest, size] : content.blobs) total += size;
  std::map<Digest, int> users;
  for (const CachedModel& model : content.models) {
    for (const Digest& each : model.blobs) ++users[each];
  }
  const auto drop = [&](const Digest& blob) {
    const auto found = content.blobs.find(blob);
    if (found == content.blobs.end() || content.coming.contains(blob)) return;
    total -= found->second;
    gone.blobs.push_back(blob);
  };
  if (total > most) {
    for (const auto& [digest, size] : content.blobs) {
      if (!users.contains(digest)) drop(digest);
    }
  }
  std::vector<const CachedModel*> idle;
  for (const CachedModel& model : content.models) {
    if (!model.wanted) idle.push_back(&model);
  }
  std::ranges::sort(idle, {}, [](const CachedModel* m) { return std::tie(m->used, m->manifest); });
  for (const CachedModel* model : idle) {
    if (total <= most) break;
    gone.models.push_back(model->manifest);
    for (const Digest& each : model->blobs) {
      if (--users[each] == 0) drop(each);
    }
  }
  if (total <= most) return gone;
  return Fail(ErrorCode::kResourceExhausted,
              "the models that plans want here take " + Megabytes(total) + ", and there may be " +
                  Megabytes(most) + "; give the agent a larger --model-cache-mb");
}

}  // namespace tactus
