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

  // Calls of models by chance, each awaited and served. `prefer`: half of them are of this one.
  void Run(int client, int calls, std::size_t prefer = 0) {
    Rng rng = StreamOf(client);
    for (int i = 0; i < calls; ++i) {
      const std::shared_ptr<Answer> answer = Send(rng, prefer);
      answer->times.wait(0);
      if (!answer->served) ++wrong_;
    }
  }
  // Bursts of such calls until the server is stopped, that is, refuses one.
  void RunUntilRefused(int client) {
    Rng rng = StreamOf(client);
    for (bool refused = false; !refused;) {
      std::vector<std::shared_ptr<Answer>> burst(1 + rng.Below(8));
      for (auto& answer : burst) answer = Send(rng, 0);
      for (const auto& answer : burst) {
        if (answer != nullptr) answer->times.wait(0);
        refused = refused || answer == nullptr || !answer->served;
      }
    }
  }

  int sent() const { return sent_; }
  int answered() const { return answered_; }
  int wrong() const { return wrong_; }  // other answers, second answers, errors but of a stop

 private:
  struct Answer {
    std::atomic<int> times{0};
    std::atomic<bool> served{false};
  };

  Rng StreamOf(int client) const { return Rng::Stream(seed_, "client/" + std::to_string(client)); }
  // Null: the model is gone.
  std::shared_ptr<Answer> Send(Rng& rng, std::size_t prefer) {
    const std::size_t model = rng.Below(2) == 0 ? prefer : rng.Below(models_.size());
    auto values = std::make_shared<std::vector<float>>(2, static_cast<float>(rng.Below(1000)));
    const auto spec = runtime_.Find(models_[model], -1);
    if (!spec) return nullptr;
    InferCall call;
    call.model = *spec;
    call.inputs = {{"x", DataType::kFp32, {1, 2}, std::as_bytes(std::span(*values))}};
    call.keepalive = values;
    call.received = std::chrono::steady_clock::now();
    auto answer = std::make_shared<Answer>();
    call.reply = [this, values, answer](InferReply&& reply) {
      answer->served = reply.status.has_value();
      const bool right = reply.status ? Floats(reply.outputs[0]) == *values
                                      : reply.status.error().code == ErrorCode::kUnavailable;
      if (!right) ++wrong_;
      if (answer->times.fetch_add(1) > 0) ++wrong_;
      ++answered_;
      answer->times.notify_all();
    };
    ++sent_;
    runtime_.Infer(std::move(call));
    return answer;
  }

  Runtime& runtime_;
  const std::vector<std::string> models_;
  const std::uint64_t seed_;
  std::atomic<int> sent_{0};
  std::atomic<int> answered_{0};
  std::atomic<int> wrong_{0};
};

}  // namespace tactus::testing
