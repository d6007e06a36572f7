// Clients that send one call after the other and count what is wrong with the answers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "runtime/harness_test.h"

namespace tactus::testing {

class SoakClients {
 public:
  SoakClients(Runtime& runtime, std::vector<std::string> models, std::uint64_t seed)
      : runtime_(runtime), models_(std::move(models)), seed_(seed) {}

  // Calls of models by chance, each awaited. `prefer`: half of them are of this one.
  void Run(int client, int calls, std::size_t prefer = 0) {
    Rng rng = Rng::Stream(seed_, "client/" + std::to_string(client));
    for (int i = 0; i < calls; ++i) {
      const std::size_t model = rng.Below(2) == 0 ? prefer : rng.Below(models_.size());
      auto values = std::make_shared<std::vector<float>>(2, static_cast<float>(rng.Below(1000)));
      InferCall call;
      call.model = runtime_.Find(models_[model], -1).value();
      call.inputs = {{"x", DataType::kFp32, {1, 2}, std::as_bytes(std::span(*values))}};
      call.keepalive = values;
      call.received = std::chrono::steady_clock::now();
      auto answers = std::make_shared<std::atomic<int>>(0);
      call.reply = [this, values, answers](InferReply&& reply) {
        if (!reply.status || Floats(reply.outputs[0]) != *values) ++wrong_;
        if (answers->fetch_add(1) > 0) ++wrong_;
        ++answered_;
        answers->notify_all();
      };
      runtime_.Infer(std::move(call));
      answers->wait(0);
    }
  }

  int answered() const { return answered_; }
  int wrong() const { return wrong_; }  // errors, other answers, second answers

 private:
  Runtime& runtime_;
  const std::vector<std::string> models_;
  const std::uint64_t seed_;
  std::atomic<int> answered_{0};
  std::atomic<int> wrong_{0};
};

}  // namespace tactus::testing
