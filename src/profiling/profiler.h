// Measures what a batch costs: for every model, exit and batch size, on a real engine, on one lane,
// from rows that lie apart in memory as those of different clients do.
//
// The cells take turns, in a new order each round, so that a disturbance of the machine touches a
// few runs of each cell instead of ruining one. A turn is `in_a_row` runs: the first finds the
// model's weights in no near cache, the last finds them all there. Batches in service find both,
// and their latencies lie in the middle.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/expected.h"
#include "base/serving_time.h"
#include "core/device_use.h"
#include "core/engine.h"
#include "profiling/limited_runs.h"
#include "profiling/machine_peaks.h"
#include "profiling/profile_samples.h"
#include "profiling/sample_row.h"
#include "workload/profile_file.h"

namespace tactus {

struct ProfilerOptions {
  // Runs of each cell that count. A cell whose runs have taken `budget` is content with `least`.
  int repetitions = 300;
  int least = 30;
  Duration budget = Seconds(3);
  // Runs of a cell before the next has its turn.
  int in_a_row = 3;
  // Runs of each cell before those: they allocate what later runs reuse.
  int warm_up = 3;
  // No batch is larger; 0: as large as each model's configuration allows.
  int max_batch = 0;
  // Runs on the cores that the server's first lane would have.
  bool pin = true;
  // Threads of the engine that run one batch.
  int threads = 1;
  // Instead of both, on a device: the part of it that the lane has.
  std::optional<double> share = std::nullopt;
  std::uint64_t seed = 1;  // of the inputs and of the order of cells
};

// 1, 2, 4, ... up to `processors`, that itself, and `measured`: with what `tactus profile` compares
// threads. Empty where there is nothing to compare.
std::vector<int> ThreadsToTry(int measured, int processors);

struct ProfilerProgress {
  double done = 0;  // share of the work, in [0, 1]
  Duration elapsed{};
  Duration remaining{};  // estimated from the runs so far
};

class Profiler {
 public:
  // The engine outlives the profiler.
  Profiler(Engine& engine, ProfilerOptions options);
  ~Profiler();  // unloads the models
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Loads the model. The error of a model that cannot be loaded or fed.
  Status Add(ModelSpec spec);
  // The same, on another engine, which outlives the profiler too.
  Status Add(ModelSpec spec, Engine& engine);
  // Takes the runs of an earlier measurement for the models that were added.
  void Adopt(const Samples& earlier);

  // Measures until every cell has its runs, or `go_on` says no; it is asked about ten times a
  // second, on a thread of the profiler, between two runs.
  Status Run(std::function<bool(const ProfilerProgress&)> go_on);

  bool complete() const;
  // Why models were left out: they did not run their samples. Run fails where all are.
  const std::vector<std::string>& left_out() const { return left_out_; }
  // What was decided of the models that nobody declared (TriedModel::said).
  const std::vector<std::string>& said() const { return said_; }
  Samples samples() const;
  // What was measured. Every cell must have a run.
  std::vector<ProfiledModel> Result() const;
  // Adds to what Result gave what its batches use of this machine, as shares of `peaks`, for every
  // model that the engine can tell this of. Returns a line for each other, with the reason: it is
  // left without such figures. And one for each model whose figures may be off by more than
  // kMostUncertainty, since its latencies moved by as much while they were measured.
  std::vector<std::string> AddUses(const MachinePeaks& peaks, std::vector<ProfiledModel>& models);
  // Adds to what Result gave how the smallest and the largest batch of each exit gain from threads:
  // medians of a few runs with each of `threads` (ascending), in turns. For models on the
  // profiler's own engine; returns a line for each that cannot be run so.
  std::vector<std::string> AddThreads(const std::vector<int>& threads,
                                      std::vector<ProfiledModel>& models);
  // How uncertain the latencies of model `subject` of Result are; nothing where they held still.
  std::optional<std::string> UncertaintyOf(std::size_t subject) const;
  // The same of a device (the engine is a DeviceMeter), which runs batches anew for it: what the
  // device counts of itself, and of what it does not count an estimate, from what `examiner` says
  // that the kernels of the same models do; null: nobody says it. Nothing else may run on the
  // device.
  std::vector<std::string> AddDeviceUses(Engine* examiner, std::vector<ProfiledModel>& models);

 private:
  struct Subject {
    explicit Subject(Engine& its) : engine(its) {}
    Engine& engine;
    ModelSpec spec;
    ModelHandle handle;
    int max_batch = 1;
    std::uint64_t bytes = 0;
    std::vector<SampleRow> rows;
  };
  struct Cell {
    std::size_t subject = 0;
    int exit = 0;
    int batch = 1;
    std::vector<Duration> runs;
    Duration spent{};
    DeviceTimes on_device{};  // of those runs together that said so
    int said = 0;
  };

  LaneSpec Lane() const { return Lane(options_.threads); }
  LaneSpec Lane(int threads) const;
  Status RunRounds(const std::function<bool(const ProfilerProgress&)>& go_on);
  struct OneRun {
    Duration took{};
    std::optional<DeviceTimes> device;
  };
  Expected<OneRun> RunOnce(const Cell& cell) {
    return RunOn(subjects_[cell.subject]->handle, cell);
  }
  Expected<OneRun> RunOn(ModelHandle handle, const Cell& cell);
  // The subject, loaded once more for so many threads.
  struct OnThreads {
    int threads = 1;
    std::vector<int> cores;
    ModelHandle handle;
  };
  Status RunTurns(const std::vector<OnThreads>& loaded, std::size_t subject, ProfiledModel& model);
  Status TakeTurn(Cell& cell);
  void LeaveOut(const std::vector<bool>& fails);
  Status WarmUp();
  // By what `examiner` says of the subject, which it has loaded as `handle`.
  Status AddUse(std::size_t subject, Engine& examiner, ModelHandle handle, int exit,
                const MachinePeaks& peaks, ProfiledExit& profiled);
  Status Estimate(std::size_t subject, Engine& examiner, const DevicePeaks& peaks,
                  ProfiledModel& model);
  Status Count(std::size_t subject, DeviceCounters& counters,
               const std::optional<DevicePeaks>& peaks, ProfiledModel& model);
  Expected<DeviceCounters::Reading> CountCell(const Cell& cell, DeviceCounters& counters);
  bool Done(const Cell& cell) const;
  CellKey KeyOf(const Cell& cell) const;
  ProfilerProgress Progress(Duration elapsed) const;
  Duration Remaining(const Cell& cell) const;

  Engine& engine_;
  LimitedRuns runs_;
  const ProfilerOptions options_;
  std::vector<std::string> left_out_;
  std::vector<std::string> said_;
  std::vector<std::unique_ptr<Subject>> subjects_;
  std::vector<Cell> cells_;
  std::vector<RowInputs> inputs_;
  std::uint64_t next_batch_ = 0;
};

}  // namespace tactus
