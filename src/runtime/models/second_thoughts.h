// What calls show of a model that its trial did not. A batch that was assumed turns out to be none:
// the model is served anew without it, and the calls that it failed run whole. Or a model of which
// no made-up row ran answers a call: it is tried anew with rows of that shape. All of it on a
// thread of its own, which starts with the first.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/expected.h"
#include "core/tensor.h"
#include "platform/task_queue.h"
#include "runtime/models/served_model.h"
#include "service/infer_call.h"

namespace tactus {

class SecondThoughts {
 public:
  // All are called on the thread, without a lock.
  struct Options {
    // Serves the model without batches, unless it is no longer the one that serves. Blocks.
    std::function<Status(const ServedModel&, const std::string& why)> stop_batching;
    // Tries the model with rows of these shapes. Blocks.
    std::function<void(const ServedModel&, const std::map<std::string, Shape>&)> try_again;
    // Hands in a call anew, or answers it with this error.
    std::function<void(InferCall&&, Status)> infer;
  };

  explicit SecondThoughts(Options options) : options_(std::move(options)) {}

  // From any thread.
  void NotBatched(InferCall&& call, std::shared_ptr<ServedModel> model, Error why);
  void Shown(std::shared_ptr<ServedModel> model, std::map<std::string, Shape> shapes);
  // What is left is done first.
  void Stop();

 private:
  void Do(std::function<void()> work);

  const Options options_;
  std::mutex mutex_;
  std::optional<TaskQueue> queue_;  // under the mutex until it is there
};

}  // namespace tactus
