#include "engines/onnxruntime/onnxruntime_engine.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "engines/loaded_models.h"
#include "engines/onnxruntime/batch_tensors.h"
#include "engines/onnxruntime/graph.h"
#include "engines/onnxruntime/library.h"
#include "engines/onnxruntime/run_failure.h"
#include "engines/onnxruntime/trace.h"
#include "engines/running_batches.h"

namespace tactus {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kShrinks = "memory.enable_memory_arena_shrinkage";  // after the run

// What one run needs beside the model; kept from batch to batch so that its buffers are reused.
struct Scratch {
  Scratch() { shrinking.AddConfigEntry(kShrinks, "cpu:0"); }
  BatchInputs inputs;
  Ort::RunOptions options;
  bool used = false;          // since GiveBackAtRest looked
  Ort::RunOptions shrinking;  // of a run after which the session's arena is smaller
};

// The Stop of RunningBatches.
struct Stop {
  Ort::RunOptions& options;
  bool asked = false;
  void operator()() {
    asked = true;
    options.SetTerminate();
  }
};

// Of a session's arena. All 0 where this version's allocator keeps no statistics.
struct ArenaStatistics {
  std::uint64_t taken = 0, in_use = 0, peak = 0;

  std::uint64_t idle() const { return taken - std::min(in_use, taken); }
};

Ort::Allocator AllocatorOf(const Graph& graph) {
  const auto arena = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  return Ort::Allocator(graph.session, arena);
}

ArenaStatistics ArenaOf(const Graph& graph) {
  try {
    const Ort::KeyValuePairs stats = AllocatorOf(graph).GetStats();
    const auto bytes = [&stats](const char* key) {
      const char* const text = stats.GetValue(key);
      std::uint64_t value = 0;
      if (text != nullptr)
        std::from_chars(text, text + std::char_traits<char>::length(text), value);
      return value;
    };
    return {bytes("TotalAllocated"), bytes("InUse"), bytes("MaxInUse")};
  } catch (const Ort::Exception&) {
    return {};
  }
}

// Its arena gives back what lies idle. ONNX Runtime does that at the end of a run alone, so one is
// begun and stopped before the first node: what it is given only has to have a shape that fits.
void Shrink(Graph& graph) {
  const Ort::AllocatorWithDefaultOptions allocator;
  std::vector<const char*> inputs;
  std::vector<Ort::Value> values;
  for (const TensorSpec& input : graph.inputs) {
    Shape shape = input.dims;
    for (std::int64_t& dim : shape) dim = std::max<std::int64_t>(dim, 1);
    inputs.push_back(input.name.c_str());
    values.push_back(
        Ort::Value::CreateTensor(allocator, shape.data(), shape.size(), ToOnnx(input.type)));
  }
  std::vector<const char*> outputs;
  for (const TensorSpec& output : graph.outputs) outputs.push_back(output.name.c_str());
  Ort::RunOptions options;
  options.AddConfigEntry(kShrinks, "cpu:0");
  options.SetTerminate();
  graph.session.Run(options, inputs.data(), values.data(), values.size(), outputs.data(),
                    outputs.size());
}

// Whether its arena gave back what nothing has used for a while.
bool ShrankAtRest(Graph& graph) {
  std::uint64_t idle = 0;
  if (!graph.arena.ShrinksAtRest([&] { return idle = ArenaOf(graph).idle(); })) return false;
  try {
    Shrink(graph);
  } catch (const Ort::Exception&) {  // it was stopped
  }
  return ArenaOf(graph).idle() < idle;
}

class OnnxModel {
 public:
  OnnxModel(const ModelSpec& spec, std::vector<std::shared_ptr<Graph>> exits)
      : inputs_(spec.inputs),
        outputs_(spec.outputs),
        batches_(spec.max_batch > 0),
        exits_(std::move(exits)) {
    for (const TensorSpec& tensor : outputs_) output_names_.push_back(tensor.name.c_str());
  }
  OnnxModel(const OnnxModel&) = delete;

  // Whether buffers went that no batch has used since the last call.
  bool GiveBackAtRest() {
    constexpr std::size_t kKept = std::size_t{1} << 20;
    std::vector<std::unique_ptr<Scratch>> rested;
    const std::lock_guard lock(mutex_);
    for (auto& scratch : spare_) {
      const bool rests = !std::exchange(scratch->used, false);
      if (rests && scratch->inputs.kept() > kKept) rested.push_back(std::move(scratch));
    }
    std::erase(spare_, nullptr);
    return !rested.empty();
  }

  // On the calling thread. May throw what the vendor's header throws.
  BatchResult Run(const BatchJob& job, RunningBatches<Stop>& running) {
    BatchResult result;
    const auto begin = Clock::now();
    std::unique_ptr<Scratch> scratch = TakeScratch();
    scratch->options.UnsetTerminate();
    scratch->shrinking.UnsetTerminate();
    result.status = scratch->inputs.Gather(inputs_, batches_, job.rows);
    const auto gathered = Clock::now();
    result.gather = gathered - begin;
    if (result.status) {
      Infer(job, *scratch, running, result, gathered);
    }
    GiveBack(std::move(scratch));
    return result;
  }

  // Each job once, through a session of its own. May throw what the vendor's header throws.
  Expected<std::vector<BatchWork>> Examine(Ort::Env& env, std::span<const BatchJob> jobs) const {
    std::string prefix = (std::filesystem::temp_directory_path() / "tactus-trace-XXXXXX").string();
    const int taken = mkstemp(prefix.data());  // so that the name is nobody else's
    if (taken < 0) return Internal(fmt::format("{}: cannot write a trace there", prefix));
    close(taken);
    const auto graph = LoadGraph(env, exits_[jobs[0].exit.value()]->path, {}, prefix);
    std::error_code ignored;
    std::filesystem::remove(prefix, ignored);
    if (!graph) return std::unexpected(graph.error());
    Status ran;
    for (std::size_t i = 0; i < jobs.size() && ran; ++i) {
      BatchInputs inputs;
      ran = inputs.Gather(inputs_, batches_, jobs[i].rows);
      if (!ran) break;
      (*graph)->session.Run(Ort::RunOptions(), inputs.names(), inputs.values().data(),
                            inputs.values().size(), output_names_.data(), output_names_.size());
    }
    Ort::AllocatorWithDefaultOptions allocator;
    auto works = TakeTrace((*graph)->session.EndProfilingAllocated(allocator).get());
    if (!ran) return std::unexpected(ran.error());
    if (works && works->size() != jobs.size()) {
      return Internal(fmt::format("{}: the trace tells of {} runs, not {}", (*graph)->path.string(),
                                  works->size(), jobs.size()));
    }
    return works;
  }

  MemoryUse Memory() const {
    MemoryUse use;
    for (const std::shared_ptr<Graph>& graph : exits_) {
      use.weight_bytes += graph->file_bytes;
      use.peak_bytes = std::max(use.peak_bytes, ArenaOf(*graph).peak);
    }
    return use;
  }

 private:
  void Infer(const BatchJob& job, Scratch& scratch, RunningBatches<Stop>& running,
             BatchResult& result, Clock::time_point gathered) {
    const std::shared_ptr<Graph>& graph = exits_[job.exit.value()];
    const std::span<const Ort::Value> values = scratch.inputs.values();
    std::vector<Ort::Value> outputs;
    const bool shrinks = graph->arena.ShrinksAfter([&graph] { return ArenaOf(*graph).idle(); });
    std::string failure;
    bool stopped = false;
    bool lacks_memory = false;
    const auto run = [&](Ort::RunOptions& options) {
      Stop stop{options};
      {
        const RunningBatches<Stop>::Running entry(running, job.id, stop);
        try {
          outputs = graph->session.Run(options, scratch.inputs.names(), values.data(),
                                       values.size(), output_names_.data(), output_names_.size());
        } catch (const Ort::Exception& e) {
          failure = RunFailure(e.what());
          lacks_memory = LacksMemory(e.what());
        }
      }
      stopped = stop.asked;
    };
    run(shrinks ? scratch.shrinking : scratch.options);
    // Where memory is short, what earlier runs have left idle must not stay until others run.
    if (outputs.empty() && lacks_memory && !stopped && !shrinks) run(scratch.shrinking);
    const auto inferred = Clock::now();
    result.infer = inferred - gathered;
    if (outputs.empty()) {
      result.status = stopped ? Fail(ErrorCode::kCancelled, "the batch was stopped")
                              : Internal(fmt::format("{}: {}", graph->path.string(), failure));
      return;
    }
    result.misshapen = batches_ && !HaveRows(outputs, job.rows.size());
    auto output = Scatter(std::move(outputs), values, outputs_, batches_, job.rows.size(), graph);
    if (output) {
      result.output = *std::move(output);
    } else {
      result.status = std::unexpected(std::move(output.error()));
    }
    result.scatter = Clock::now() - inferred;
  }

  std::unique_ptr<Scratch> TakeScratch() {
    std::lock_guard lock(mutex_);
    if (spare_.empty()) return std::make_unique<Scratch>();
    std::unique_ptr<Scratch> scratch = std::move(spare_.back());
    spare_.pop_back();
    scratch->used = true;
    return scratch;
  }
  void GiveBack(std::unique_ptr<Scratch> scratch) {
    std::lock_guard lock(mutex_);
    spare_.push_back(std::move(scratch));
  }

  const std::vector<TensorSpec> inputs_;
  const std::vector<TensorSpec> outputs_;
  const bool batches_;
  const std::vector<std::shared_ptr<Graph>> exits_;
  std::vector<const char*> output_names_;  // into outputs_
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> spare_;  // at most one for each slot of the lane
};

class OnnxRuntimeEngine final : public Engine {
 public:
  explicit OnnxRuntimeEngine(std::string version)
      : name_("onnxruntime " + std::move(version)), env_(MakeEnv("tactus")) {}

  EngineTraits traits() const override {
    return {.name = name_, .terminates = true, .tries = true, .max_slots = 64};
  }

  Expected<ModelHandle> Load(ModelSpec& spec, const LaneSpec& lane) override {
    if (spec.exits.empty()) {
      return InvalidArgument(fmt::format("model '{}' has no graph to load", spec.name));
    }
    std::vector<std::shared_ptr<Graph>> exits;
    for (const ExitSpec& exit : spec.exits) {
      auto graph = Share(spec, exit.graph, OnCpu(lane.placement));
      if (!graph) return std::unexpected(std::move(graph.error()));
      if (Status ok = MatchTensors(spec, **graph); !ok) return std::unexpected(ok.error());
      exits.push_back(*std::move(graph));
    }
    spec.contents = ContentsOf(exits);
    return models_.Add(std::make_unique<OnnxModel>(spec, std::move(exits)));
  }

  void Unload(ModelHandle handle) override { models_.Remove(handle); }

  void Submit(ModelHandle handle, const BatchJob& job, Completions& done) noexcept override {
    RunAtOnce(models_, handle, job, done, [this](auto& model, const BatchJob& batch) {
      try {
        return model->Run(batch, running_);
      } catch (const Ort::Exception& e) {
        return BatchResult{.status = Internal(fmt::format("ONNX Runtime: {}", e.what()))};
      }
    });
  }

  void Terminate(BatchId batch) noexcept override { running_.Terminate(batch); }

  MemoryUse Memory(ModelHandle handle) const override {
    const auto model = models_.Use(handle);
    return model ? (*model)->Memory() : MemoryUse{};
  }

  std::vector<ArenaUse> Arenas() const override {
    std::map<std::pair<std::string, std::int64_t>, ArenaUse> uses;
    for (const auto& [known, graph] : Graphs()) {
      const ArenaStatistics arena = ArenaOf(*graph);
      ArenaUse& use = uses[{known.model, known.version}];
      use.bytes += arena.taken;
      use.in_use_bytes += arena.in_use;
    }
    std::vector<ArenaUse> all;
    for (auto& [model, use] : uses) {
      all.push_back({model.first, model.second, use.bytes, use.in_use_bytes});
    }
    return all;
  }

  bool GiveBackAtRest() override {
    bool any = false;
    for (const auto& [known, graph] : Graphs()) any |= ShrankAtRest(*graph);
    models_.ForEach([&](const auto& model) { any |= model->GiveBackAtRest(); });
    return any;
  }

  Expected<std::vector<BatchWork>> Examine(ModelHandle handle,
                                           std::span<const BatchJob> jobs) override {
    const auto model = models_.Use(handle);
    if (!model) return Fail(ErrorCode::kUnavailable, "model is not loaded");
    if (jobs.empty()) return std::vector<BatchWork>{};
    try {
      return (*model)->Examine(env_, jobs);
    } catch (const std::exception& e) {
      return Internal(fmt::format("ONNX Runtime: {}", e.what()));
    }
  }

 private:
  struct Known {
    std::weak_ptr<Graph> graph;
    std::string model;
    std::int64_t version = 1;
  };

  // Those that are loaded, of all lanes.
  std::vector<std::pair<Known, std::shared_ptr<Graph>>> Graphs() const {
    std::vector<std::pair<Known, std::shared_ptr<Graph>>> graphs;
    const std::lock_guard lock(mutex_);
    for (const auto& [key, known] : graphs_) {
      if (auto graph = known.graph.lock()) graphs.emplace_back(known, std::move(graph));
    }
    return graphs;
  }

  // The lanes of one load share a graph: its weights lie in memory once. Another load reads the
  // files again, since nothing else tells for certain whether they changed: a file beside the graph
  // may have, and size and time may be as they were. A session that has threads on other cores is
  // another graph.
  Expected<std::shared_ptr<Graph>> Share(const ModelSpec& spec, const std::filesystem::path& path,
                                         const CpuPlacement& lane) {
    if (spec.load == 0) return LoadGraph(env_, path, lane);
    std::string key = fmt::format("{} {}", spec.load, path.string());
    if (lane.threads > 1) {
      key += fmt::format("/{} on {}", lane.threads, fmt::join(lane.cores, ","));
    }
    {
      std::lock_guard lock(mutex_);
      if (auto graph = graphs_[key].graph.lock()) return graph;
    }
    auto loaded = LoadGraph(env_, path, lane);  // slow, so not under the lock
    if (!loaded) return loaded;
    std::lock_guard lock(mutex_);
    std::erase_if(graphs_, [](const auto& entry) { return entry.second.graph.expired(); });
    Known& known = graphs_[key];
    if (auto graph = known.graph.lock()) return graph;
    known = {*loaded, spec.name, spec.version};
    return loaded;
  }

  const std::string name_;
  Ort::Env env_;
  mutable std::mutex mutex_;
  std::map<std::string, Known> graphs_;
  mutable LoadedModels<std::unique_ptr<OnnxModel>> models_;
  RunningBatches<Stop> running_;
};

}  // namespace

Expected<std::unique_ptr<Engine>> MakeOnnxRuntimeEngine(const std::filesystem::path& library) {
  Expected<std::string> version = OpenOnnxRuntime(library);
  if (!version) return std::unexpected(std::move(version.error()));
  try {
    return std::make_unique<OnnxRuntimeEngine>(*std::move(version));
  } catch (const Ort::Exception& e) {
    return Internal(fmt::format("ONNX Runtime does not start: {}", e.what()));
  }
}

}  // namespace tactus
