// What an engine has loaded, by handle. Unload waits for the batches that still use the model, so a
// model may be taken away while work is in flight.
//
//   auto use = models.Use(handle);       // in Submit; holds the model until `use` is gone
//   if (!use) ...                        // unloaded, or never loaded
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "core/engine.h"

namespace tactus {

template <class Model>
class LoadedModels {
  struct Entry {
    explicit Entry(Model&& m) : model(std::move(m)) {}
    Model model;
    int users = 0;
  };

 public:
  class InUse {
   public:
    InUse() = default;
    InUse(LoadedModels* owner, Entry* entry) : owner_(owner), entry_(entry) {}
    InUse(InUse&& other) noexcept : owner_(other.owner_), entry_(std::exchange(other.entry_, {})) {}
    InUse& operator=(InUse&&) = delete;
    ~InUse() {
      if (entry_ != nullptr) owner_->Leave(*entry_);
    }
    explicit operator bool() const { return entry_ != nullptr; }
    Model& operator*() const { return entry_->model; }
    Model* operator->() const { return &entry_->model; }

   private:
    LoadedModels* owner_ = nullptr;
    Entry* entry_ = nullptr;
  };

  ModelHandle Add(Model&& model) {
    auto entry = std::make_unique<Entry>(std::move(model));
    std::lock_guard lock(mutex_);
    const std::uint64_t handle = ++last_;
    entries_.emplace(handle, std::move(entry));
    return {handle};
  }

  InUse Use(ModelHandle handle) {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(handle.value);
    if (found == entries_.end()) return {};
    ++found->second->users;
    return {this, found->second.get()};
  }

  // `visit` is quick: nobody loads, uses or removes a model meanwhile.
  void ForEach(auto&& visit) {
    const std::lock_guard lock(mutex_);
    for (auto& [handle, entry] : entries_) visit(entry->model);
  }

  // Blocks until nobody uses the model, then destroys it on this thread. Must not be called by code
  // that holds an InUse of it, Completions::Done for instance.
  void Remove(ModelHandle handle) {
    std::unique_lock lock(mutex_);
    const auto found = entries_.find(handle.value);
    if (found == entries_.end()) return;
    const std::unique_ptr<Entry> entry = std::move(found->second);
    entries_.erase(found);
    idle_.wait(lock, [&] { return entry->users == 0; });
    lock.unlock();
  }

 private:
  void Leave(Entry& entry) {
    std::lock_guard lock(mutex_);
    if (--entry.users == 0) idle_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable idle_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Entry>> entries_;
  std::uint64_t last_ = 0;
};

// For engines that run a batch on the caller's thread: `run(model, job)` gives its result.
template <class Model, class Run>
void RunAtOnce(LoadedModels<Model>& models, ModelHandle handle, const BatchJob& job,
               Completions& done, Run run) noexcept {
  const auto model = models.Use(handle);
  if (!model) {
    return done.Done(job.id, {.status = Fail(ErrorCode::kUnavailable, "model is not loaded")});
  }
  BatchResult result;
  try {
    result = run(*model, job);
  } catch (const std::bad_alloc&) {
    result = {.status = Fail(ErrorCode::kResourceExhausted, "there is no memory for the batch")};
  } catch (const std::exception& e) {
    result = {.status = Internal(e.what())};
  }
  done.Done(job.id, std::move(result));
}

}  // namespace tactus
