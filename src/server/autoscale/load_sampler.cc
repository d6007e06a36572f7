#include "server/autoscale/load_sampler.h"

#include <utility>

namespace tactus {

LoadSampler::LoadSampler(LoadSamplerOptions options, std::function<LoadTotals()> read)
    : options_(options), read_(std::move(read)), adviser_(options.advice, options.window) {}

void LoadSampler::Start() {
  Sample();
  thread_.Start("sampler", Every(options_.interval, [this] { Sample(); }), options_.interval);
}

void LoadSampler::Stop() { thread_.Stop(); }

void LoadSampler::Sample() {
  LoadSample sample;
  {
    const std::lock_guard lock(sampling_);
    const LoadTotals read = read_();
    sample = {adviser_.Take(read.totals, read.lanes), read.pending};
    const std::lock_guard publish(latest_mutex_);
    latest_ = sample;
  }
  const std::lock_guard lock(follower_mutex_);
  if (follower_) follower_(sample);
}

LoadSample LoadSampler::latest() const {
  const std::lock_guard lock(latest_mutex_);
  return latest_;
}

void LoadSampler::Follow(std::function<void(const LoadSample&)> follower) {
  const std::lock_guard lock(follower_mutex_);
  follower_ = std::move(follower);
}

}  // namespace tactus
