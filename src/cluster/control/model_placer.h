// Brings models to a node's disk on a thread of its own, one after the other.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "cluster/models/model_fetch.h"
#include "fleet/messages.h"

namespace tactus {

class ModelPlacer {
 public:
  // On its thread.
  using Done = std::function<void(Expected<ModelLinks>)>;

  // `store` outlives it. Who asks has checked the names and digests.
  ModelPlacer(ModelStore& store, std::unique_ptr<BlobSource> source, std::string node,
              std::function<void(const std::string&)> log);
  ~ModelPlacer();  // what was not done is not told

  // `wanted`: digests of all models that are in use here.
  void Place(const ModelRef& ref, const std::set<std::string>& wanted, Done done);
  // All of that name; their ends are told.
  void Stop(const std::string& model);
  // Bytes that have come.
  std::uint64_t fetched() const { return fetched_.load(std::memory_order_relaxed); }

 private:
  struct Job {
    std::string model;
    Digest digest;
    std::set<Digest> wanted;
    Done done;
    std::stop_source stop;
  };
  void Run();

  std::atomic<std::uint64_t> fetched_{0};
  const std::unique_ptr<BlobSource> source_;
  ModelFetch fetch_;
  std::mutex mutex_;
  std::condition_variable come_;
  std::deque<Job> jobs_;  // under the mutex; the first is under way
  bool ended_ = false;    // under the mutex
  std::thread thread_;
};

}  // namespace tactus
