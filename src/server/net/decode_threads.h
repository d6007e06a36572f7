// Where heavy requests are read: what unpacks or parses long texts stays off the I/O loop, so that
// health and small calls do not wait for it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/net/client_turns.h"

namespace tactus {

// Clients take turns: one who sends much waits for itself, not the others for it.
class DecodeThreads {
 public:
  // `thread` numbers the one that runs the task, from 0.
  using Task = std::function<void(std::size_t thread)>;

  explicit DecodeThreads(std::size_t threads);
  // Runs what is left, then joins.
  ~DecodeThreads();

  void Add(const std::string& client, Task task);

 private:
  void Stop();
  void Run(std::size_t thread);

  std::mutex mutex_;
  std::condition_variable changed_;
  ClientTurns<Task> tasks_;  // under the mutex
  bool stopped_ = false;     // likewise
  std::vector<std::thread> threads_;
};

}  // namespace tactus
