// An engine of graphs that tests write as functions of rows.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "profiling/model_trial.h"

namespace tactus::testing {

// Rows of numbers, as a graph sees them; nothing: it does not run.
using Table = std::vector<std::vector<float>>;
using Graph = std::function<std::optional<Table>(const Table&)>;

// Takes one row of floats for each row of the batch, with those of further inputs at its end, and
// gives what `graph` gives.
class GraphEngine final : public Engine {
 public:
  // `second` gives a second output, with as many rows.
  explicit GraphEngine(Graph graph, Graph second = nullptr)
      : graph_(std::move(graph)), second_(std::move(second)) {}

  EngineTraits traits() const override { return {.name = "graph", .tries = true}; }
  Expected<ModelHandle> Load(ModelSpec& spec, const LaneSpec&) override {
    if (spec.max_batch < 0) spec.max_batch = 4;
    batches_ = spec.max_batch > 0;
    integers_ = spec.inputs[0].type == DataType::kInt32;
    spec.contents = contents;
    ++loaded;
    return ModelHandle{1};
  }
  void Unload(ModelHandle) override { --loaded; }
  void Submit(ModelHandle, const BatchJob& job, Completions& done) noexcept override {
    Table rows;
    for (const RowInputs& row : job.rows) {
      auto& values = rows.emplace_back(row.inputs[0].bytes / sizeof(float));
      std::memcpy(values.data(), row.inputs[0].data, row.inputs[0].bytes);
      for (const TensorView& more : row.inputs.subspan(1)) {
        const std::size_t had = values.size();
        values.resize(had + more.bytes / sizeof(float));
        if (more.bytes > 0) std::memcpy(values.data() + had, more.data, more.bytes);
      }
      if (!integers_) continue;
      for (float& value : values) value = static_cast<float>(std::bit_cast<std::int32_t>(value));
    }
    const auto answer = graph_(rows);
    ++runs;
    if (!answer && endless)
      return done.Done(job.id, {.status = Fail(ErrorCode::kCancelled, "it was ended")});
    if (!answer) return done.Done(job.id, {.status = Internal("the graph refuses it")});
    if (batches_ && answer->size() != rows.size()) {
      return done.Done(
          job.id, {.status = Internal("output 0 has " + std::to_string(answer->size()) + " rows"),
                   .misshapen = true});
    }
    auto output = std::make_shared<BatchOutput>();
    auto numbers = std::make_shared<std::array<std::vector<float>, 2>>();
    const auto add = [&](const Table& table) {
      auto& values = (*numbers)[output->tensors.size()];
      for (const auto& row : table) values.insert(values.end(), row.begin(), row.end());
      output->tensors.push_back(
          {{static_cast<std::int64_t>(table.size()),
            static_cast<std::int64_t>(table.empty() ? 0 : table.front().size())},
           std::as_bytes(std::span(values))});
    };
    add(*answer);
    if (second_) add(*second_(rows));
    output->storage = numbers;
    done.Done(job.id, {.output = std::move(output)});
  }

  int loaded = 0;
  int runs = 0;
  bool endless = false;        // what the graph refuses is a run that took too long
  std::uint64_t contents = 1;  // of the files

 private:
  const Graph graph_;
  const Graph second_;
  bool batches_ = false;
  bool integers_ = false;  // which the graph sees as numbers
};

inline ModelSpec GraphSpec(int max_batch, Shape dims = {-1, 8}) {
  ModelSpec spec{.name = "m", .max_batch = max_batch};
  spec.inputs = {{"x", DataType::kFp32, std::move(dims)}};
  spec.outputs = {{"y", DataType::kFp32, {-1, -1}}};
  spec.exits = {{"1", {}, 0}};
  return spec;
}

inline ModelSpec TwoOutputs(int max_batch) {
  ModelSpec spec = GraphSpec(max_batch);
  spec.outputs.push_back({"z", DataType::kFp32, {-1, -1}});
  return spec;
}

inline Expected<TriedModel> TryGraph(GraphEngine& engine, ModelSpec spec) {
  const LaneSpec lane;
  return LoadTried(std::move(spec), engine, {&lane, 1}, BatchId{0});
}

// Each element on its own, by `change` of it and of the whole batch's mean.
inline Graph Each(std::function<float(float, float)> change) {
  return [change](const Table& rows) {
    float sum = 0;
    std::size_t count = 0;
    for (const auto& row : rows) {
      for (const float value : row) sum += value, ++count;
    }
    Table out = rows;
    for (auto& row : out) {
      for (float& value : row) value = change(value, sum / static_cast<float>(count));
    }
    return std::optional(out);
  };
}

inline std::string Said(const TriedModel& tried) {
  std::string all;
  for (const std::string& line : tried.said) all += line + "\n";
  return all;
}

}  // namespace tactus::testing
