#include "engines/isolated/isolated_engine.h"

#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "engines/isolated/engine_process.h"
#include "engines/isolated/messages.h"
#include "engines/isolated/process_host.h"
#include "engines/isolated/process_keeper.h"
#include "engines/loaded_models.h"

namespace tactus {
namespace {

using isolated::EngineProcess;
using isolated::ProcessKeeper;

// What an engine left as it was stays as declared.
Status CompleteSpec(ModelSpec& spec, const isolated::LoadAnswer& answer) {
  if (spec.exits.size() > answer.exits.size()) return Internal("the engine's process lost an exit");
  spec.max_batch = answer.max_batch;
  spec.contents = answer.contents;
  spec.inputs = answer.inputs;
  spec.outputs = answer.outputs;
  for (std::size_t i = spec.exits.size(); i < answer.exits.size(); ++i) {
    spec.exits.push_back({answer.exits[i], {}, 0});
  }
  return {};
}

class IsolatedEngine final : public Engine {
 public:
  IsolatedEngine(isolated::Hello hello, IsolationOptions options)
      : hello_(std::move(hello)),
        options_(std::move(options)),
        keeper_(options_.stop_grace, options_.hang_limit) {}

  // A process that only says what the engine is.
  Status Ask() {
    auto process = Start({.process = kTrialProcess});
    if (!process) return std::unexpected(std::move(process.error()));
    traits_ = {.name = (*process)->engine().name,
               .terminates = (*process)->engine().terminates,
               .isolated = true,
               .tries = (*process)->engine().tries,
               .max_slots = 1};
    return {};
  }

  EngineTraits traits() const override { return traits_; }

  Expected<ModelHandle> Load(ModelSpec& spec, const LaneSpec& lane) override {
    const CpuPlacement& placement = OnCpu(lane.placement);
    auto process = ProcessOf(placement);
    if (!process) return std::unexpected(std::move(process.error()));
    auto answer = (*process)->Load(spec, placement);
    if (!answer && (*process)->dead()) {
      return Internal(
          fmt::format("model '{}': the engine's process died while it loaded the "
                      "model: {}",
                      spec.name, (*process)->Ending()));
    }
    if (!answer) return std::unexpected(std::move(answer.error()));
    if (!answer->status) return std::unexpected(std::move(answer->status.error()));
    if (Status whole = CompleteSpec(spec, *answer); !whole) return std::unexpected(whole.error());
    return models_.Add({*std::move(process), answer->handle, spec.outputs, spec.max_batch > 0});
  }

  void Unload(ModelHandle handle) override {
    Loaded model;
    {
      const auto use = models_.Use(handle);
      if (!use) return;
      model = *use;
    }
    models_.Remove(handle);
    if (!model.process->dead()) model.process->Unload(model.handle);
  }

  void Submit(ModelHandle handle, const BatchJob& job, Completions& done) noexcept override {
    RunAtOnce(models_, handle, job, done,
              [this](auto& model, const BatchJob& batch) { return Run(model, batch); });
  }

  void Terminate(BatchId batch) noexcept override { keeper_.Stop(batch); }
  void Abandon() noexcept override { keeper_.KillAll(); }

  MemoryUse Memory(ModelHandle handle) const override {
    const auto model = models_.Use(handle);
    return model ? model->process->Memory(model->handle) : MemoryUse{};
  }

  // The sums of all lanes.
  bool GiveBackAtRest() override {
    bool any = false;
    for (const auto& [number, lane] : Lanes()) {
      const std::unique_lock lock(lane->mutex, std::try_to_lock);
      if (!lock || lane->process == nullptr || lane->process->dead()) continue;
      any |= lane->process->GiveBackAtRest();
    }
    return any;
  }
  std::vector<ArenaUse> Arenas() const override {
    std::map<std::pair<std::string, std::int64_t>, ArenaUse> uses;
    for (const auto& [number, lane] : Lanes()) {
      const std::unique_lock lock(lane->mutex, std::try_to_lock);
      if (!lock || lane->process == nullptr || lane->process->dead()) continue;
      for (const ArenaUse& arena : lane->process->Arenas()) {
        ArenaUse& sum = uses[{arena.model, arena.version}];
        sum = {arena.model, arena.version, sum.bytes + arena.bytes,
               sum.in_use_bytes + arena.in_use_bytes};
      }
    }
    std::vector<ArenaUse> all;
    for (auto& [model, use] : uses) all.push_back(std::move(use));
    return all;
  }

  std::vector<EngineProcessReading> Processes() {
    std::vector<EngineProcessReading> readings;
    for (const auto& [number, lane] : Lanes()) {
      const std::unique_lock lock(lane->mutex, std::try_to_lock);
      if (!lock || lane->process == nullptr) continue;  // it starts just now
      EngineProcess& process = *lane->process;
      EngineProcessReading& reading = readings.emplace_back(hello_.engine, number, process.pid());
      reading.starts = lane->starts;
      reading.runs = process.StillRuns();
      if (!reading.runs) reading.ending = process.Ending();
      reading.silent = reading.runs && ProcessKeeper::Silent(process);
      if (reading.runs) reading.resident_bytes = process.ResidentBytes();
    }
    return readings;
  }

  std::vector<SampleTensor> Sample(ModelHandle handle) const override {
    const auto model = models_.Use(handle);
    return model ? model->process->Sample(model->handle) : std::vector<SampleTensor>{};
  }

 private:
  struct Loaded {
    std::shared_ptr<EngineProcess> process;
    std::uint64_t handle = 0;  // there
    std::vector<TensorSpec> outputs;
    bool batches = false;
  };
  struct LaneProcess {
    std::mutex mutex;  // held while it starts
    std::shared_ptr<EngineProcess> process;
    std::int64_t starts = 0;
  };

  BatchResult Run(const Loaded& model, const BatchJob& job) {
    const ProcessKeeper::Running running(keeper_, *model.process, job.id);
    BatchResult result =
        model.process->Run(model.handle, job, {model.outputs, model.batches, job.rows.size()});
    if (result.lane_lost && running.killed()) {
      // Whoever comes next hears that the lane is lost.
      return {.status = Fail(ErrorCode::kCancelled, "the batch was stopped with its process")};
    }
    return result;
  }

  Expected<std::shared_ptr<EngineProcess>> Start(const CpuPlacement& placement) {
    const bool trial = placement.process == kTrialProcess;
    EngineProcess::Options options;
    options.program = options_.program;
    options.program.emplace_back(kEngineProcess);
    options.hello = hello_;
    options.title = trial ? fmt::format("{}, trial", hello_.engine)
                          : fmt::format("{}, lane {}", hello_.engine, placement.process);
    if (!trial) options.cores = placement.cores;
    return EngineProcess::Start(options, keeper_);
  }

  Expected<std::shared_ptr<EngineProcess>> ProcessOf(const CpuPlacement& placement) {
    if (placement.process == kTrialProcess) return Start(placement);
    LaneProcess& lane = LaneOf(placement.process);
    const std::lock_guard lock(lane.mutex);
    if (lane.process == nullptr || !lane.process->StillRuns()) {
      auto started = Start(placement);
      if (!started) return started;
      lane.process = *std::move(started);
      ++lane.starts;
    }
    return lane.process;
  }

  std::vector<std::pair<int, LaneProcess*>> Lanes() const {
    std::vector<std::pair<int, LaneProcess*>> lanes;
    const std::lock_guard lock(mutex_);
    for (auto& [number, lane] : lanes_) lanes.emplace_back(number, &lane);
    return lanes;
  }

  LaneProcess& LaneOf(int process) {
    const std::lock_guard lock(mutex_);
    return lanes_[process];
  }

  const isolated::Hello hello_;
  const IsolationOptions options_;
  EngineTraits traits_;
  ProcessKeeper keeper_;  // before the processes: it starts them
  mutable std::mutex mutex_;
  mutable std::map<int, LaneProcess> lanes_;
  mutable LoadedModels<Loaded> models_;
};

}  // namespace

Expected<std::unique_ptr<Engine>> MakeIsolatedEngine(const std::string& name,
                                                     const std::string& library,
                                                     const IsolationOptions& options) {
  auto engine = std::make_unique<IsolatedEngine>(isolated::Hello{name, library}, options);
  if (Status asked = engine->Ask(); !asked) return std::unexpected(std::move(asked.error()));
  return engine;
}

std::vector<EngineProcessReading> ProcessesOf(Engine& engine) {
  auto* isolated = dynamic_cast<IsolatedEngine*>(&engine);
  return isolated == nullptr ? std::vector<EngineProcessReading>{} : isolated->Processes();
}

}  // namespace tactus
