// An InferenceService for tests of ensembles: it holds every call until the test says how it ends,
// on the test's thread and in the test's time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/check.h"
#include "ensemble/ensemble_service.h"
#include "pipeline/tensors.h"

namespace tactus {

// Floats as bytes, and back.
inline std::shared_ptr<std::vector<float>> Floats(std::vector<float> values) {
  return std::make_shared<std::vector<float>>(std::move(values));
}
inline std::span<const std::byte> BytesIn(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}
inline std::vector<float> FloatsIn(const OutputTensor& tensor) {
  std::vector<float> values;
  for (const auto& part : tensor.parts) {
    std::vector<float> more(part.size() / sizeof(float));
    std::memcpy(more.data(), part.data(), part.size());
    values.insert(values.end(), more.begin(), more.end());
  }
  return values;
}

inline ModelSpec FloatModel(std::string name, int max_batch, std::vector<TensorSpec> inputs,
                            std::vector<TensorSpec> outputs) {
  ModelSpec spec;
  spec.name = std::move(name);
  spec.platform = "scripted";
  spec.max_batch = max_batch;
  spec.inputs = std::move(inputs);
  spec.outputs = std::move(outputs);
  spec.exits = {{"1", "", 0}};
  return spec;
}

class ScriptedSteps final : public InferenceService {
 public:
  struct Held {
    CallId id = 0;
    InferCall call;
    bool cancelled = false;
  };

  void Add(ModelSpec spec) {
    const std::string name = spec.name;
    models[name] = std::make_shared<const ModelSpec>(std::move(spec));
  }

  // The calls that wait, oldest first; of one model: the first of them.
  std::vector<Held> held;
  Held& Of(const std::string& model) {
    for (Held& each : held) {
      if (each.call.model->name == model) return each;
    }
    CHECK(false, "no call of this model is held");
    return held.front();
  }
  std::size_t CountOf(const std::string& model) const {
    std::size_t count = 0;
    for (const Held& each : held) count += each.call.model->name == model;
    return count;
  }
  Held TakeOut(CallId id) {
    for (auto it = held.begin(); it != held.end(); ++it) {
      if (it->id != id) continue;
      Held taken = std::move(*it);
      held.erase(it);
      return taken;
    }
    CHECK(false, "no such call is held");
    return {};
  }

  // Ends the call with one output of these floats for each that was asked for.
  void Answer(CallId id, std::vector<std::pair<Shape, std::vector<float>>> outputs) {
    Held call = TakeOut(id);
    auto storage = std::make_shared<std::vector<std::vector<float>>>();
    for (auto& [shape, values] : outputs) storage->push_back(std::move(values));
    InferReply reply;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto index = static_cast<std::size_t>(call.call.outputs[i]);
      OutputTensor output{
          call.call.model->outputs[index].name, DataType::kFp32, outputs[i].first, {}};
      if (!(*storage)[i].empty()) output.parts.push_back(BytesIn((*storage)[i]));
      reply.outputs.push_back(std::move(output));
    }
    last_storage = storage;
    reply.storage = std::move(storage);
    reply.served = {
        .outcome = Outcome::kMet, .batch = 2, .queue_us = queue_us, .execution_us = 200};
    reply.model = call.call.model;
    call.call.reply(std::move(reply));
  }
  void End(CallId id, ErrorCode code, std::string why, Outcome outcome) {
    Held call = TakeOut(id);
    InferReply reply;
    reply.status = Fail(code, std::move(why));
    reply.served.outcome = outcome;
    call.call.reply(std::move(reply));
  }

  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t) const override {
    const auto found = models.find(model);
    if (found == models.end()) {
      return NotFound("Request for unknown model: '" + std::string(model) + "' is not found");
    }
    return found->second;
  }
  Status ModelReady(std::string_view model, std::int64_t version) const override {
    const auto found = Find(model, version);
    if (!found) return std::unexpected(found.error());
    if (model == unserved) return Fail(ErrorCode::kUnavailable, "no worker serves it");
    return {};
  }
  CallId Infer(InferCall&& call) override {
    const CallId id = next_++;
    if (refuses && refuses(*call.model)) {
      InferReply reply;
      reply.status = Fail(refusal, "the queue is full");
      reply.served.outcome = Outcome::kShed;
      reply.refused = true;
      const auto answer = std::move(call.reply);
      answer(std::move(reply));
      return 0;
    }
    held.push_back({id, std::move(call)});
    return id;
  }
  // As the runtime, which may reply at once: a call that runs ends later, one that waits now.
  void Cancel(CallId id) override {
    for (Held& each : held) {
      if (each.id != id) continue;
      each.cancelled = true;
      if (!runs_on) End(id, ErrorCode::kCancelled, "cancelled", Outcome::kCancelled);
      return;
    }
  }
  bool Live() const override { return true; }
  bool Ready() const override { return true; }
  std::vector<ModelState> Index() const override {
    std::vector<ModelState> index;
    for (const auto& [name, spec] : models) index.push_back({name, 1, "READY", ""});
    return index;
  }
  Status Load(const std::string& model, const std::string&) override {
    const auto found = on_disk.find(model);
    if (found == on_disk.end()) return NotFound("model '" + model + "' is not in the repository");
    Add(found->second);
    return {};
  }
  Status Unload(const std::string& model) override {
    models.erase(model);
    return {};
  }
  Expected<std::vector<ModelStatistics>> Statistics(std::string_view, std::int64_t) const override {
    return std::vector<ModelStatistics>{};
  }

  std::map<std::string, std::shared_ptr<const ModelSpec>, std::less<>> models;
  std::map<std::string, ModelSpec> on_disk;
  std::string unserved;  // may be called, and is not ready
  std::function<bool(const ModelSpec&)> refuses;
  ErrorCode refusal = ErrorCode::kResourceExhausted;  // as what it refuses
  bool runs_on = false;
  std::shared_ptr<const std::vector<std::vector<float>>> last_storage;
  std::int64_t queue_us = 100;  // of what Answer answers

 private:
  CallId next_ = 1;
};

// Ensembles over scripted steps, in the test's time.
class EnsembleBench {
 public:
  explicit EnsembleBench(EnsembleOptions options = {}) {
    options.clock = [this] { return now; };
    if (options.default_slo == Seconds(10)) options.default_slo = Millis(100);
    EnsembleFolders folders;
    folders.list = [this] {
      std::vector<std::string> names;
      for (const auto& [name, declared] : declared_) names.push_back(name);
      return names;
    };
    folders.holds = [this](const std::string& model, const std::string&) {
      return declared_.contains(model);
    };
    folders.read = [this](const std::string& model,
                          const std::string&) -> Expected<std::vector<EnsembleDeclaration>> {
      EnsembleDeclaration declared = declared_.at(model);
      if (Status linked = LinkStages(declared); !linked) return std::unexpected(linked.error());
      return std::vector{declared};
    };
    service = std::make_unique<EnsembleService>(steps, std::move(options), std::move(folders));
  }

  // `stages`: with names, models and links; the rest as told.
  void Declare(ModelSpec model, PipelineDeclaration pipeline) {
    model.platform = "ensemble";
    pipeline.name = model.name;
    pipeline.slo = model.slo;
    const std::string name = model.name;
    declared_[name] = {std::move(model), std::move(pipeline)};
  }

  struct Asked {
    CallId id = 0;
    std::vector<InferReply> replies;
    const InferReply& reply() const {
      CHECK(replies.size() == 1, "a call is answered once");
      return replies.front();
    }
    bool answered() const { return !replies.empty(); }
  };
  // Calls `model` with one input. The result lives as long as the bench.
  Asked& Call(const std::string& model, Shape shape, std::vector<float> values,
              std::optional<Duration> limit = {}) {
    auto& asked = *asked_.emplace_back(std::make_unique<Asked>());
    auto found = service->Find(model, -1);
    EXPECT_TRUE(found) << found.error().message;
    InferCall call;
    call.model = *found;
    const auto bytes = Floats(std::move(values));
    call.inputs = {{(*found)->inputs[0].name, DataType::kFp32, std::move(shape), BytesIn(*bytes)}};
    call.keepalive = bytes;
    call.received = now - since_header;
    call.limit.Tighten(limit);
    call.reply = [&asked](InferReply&& reply) { asked.replies.push_back(std::move(reply)); };
    asked.id = service->Infer(std::move(call));
    return asked;
  }
  void Pass(Duration time) {
    now += time;
    service->RunTimer();
  }

  std::chrono::steady_clock::time_point now{std::chrono::hours(1)};
  Duration since_header{};  // how long the calls took to come
  ScriptedSteps steps;
  std::unique_ptr<EnsembleService> service;

 private:
  std::map<std::string, EnsembleDeclaration> declared_;
  std::vector<std::unique_ptr<Asked>> asked_;
};

inline TensorSpec Row4(std::string name) { return {std::move(name), DataType::kFp32, {-1, 4}}; }

// first -> second, models of one input and one output that batch.
inline void DeclareChain(EnsembleBench& bench, DeadlineRule rule = DeadlineRule::kRedivide) {
  for (const char* name : {"first", "second"}) {
    bench.steps.Add(FloatModel(name, 8, {Row4("in")}, {Row4("out")}));
  }
  PipelineDeclaration chain;
  chain.deadlines = rule;
  chain.stages = {
      {.name = "first", .model = "first", .inputs = {{"in", "x"}}, .outputs = {{"out", "between"}}},
      {.name = "second",
       .model = "second",
       .inputs = {{"in", "between"}},
       .outputs = {{"out", "y"}}}};
  ModelSpec model = FloatModel("chain", 4, {Row4("x")}, {Row4("y")});
  model.slo = Millis(100);
  bench.Declare(std::move(model), std::move(chain));
  bench.service->Open({"*"});
}

}  // namespace tactus
