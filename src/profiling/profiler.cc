#include "profiling/profiler.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/rng.h"
#include "platform/cpu_affinity.h"
#include "profiling/model_trial.h"

namespace tactus {
namespace {

using Clock = std::chrono::steady_clock;
constexpr Duration kLongestOfRow = Seconds(60);
constexpr Duration kBetweenReports = Millis(100);
constexpr BatchId kTrial{std::uint64_t{1} << 63};  // measured batches count from 0

// Fisher and Yates, with our own generator: std::shuffle differs between libraries.
void Shuffle(std::vector<std::size_t>& order, Rng& rng) {
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.Below(i)]);
}

}  // namespace

Profiler::Profiler(Engine& engine, ProfilerOptions options) : engine_(engine), options_(options) {
  CHECK(options_.least >= 1 && options_.repetitions >= options_.least, "runs of a cell");
}

Profiler::~Profiler() {
  for (const auto& subject : subjects_) subject->engine.Unload(subject->handle);
}

LaneSpec Profiler::Lane(int threads) const {
  if (options_.share) return {.fraction = *options_.share, .placement = CudaPlacement{}};
  CpuPlacement cpu{.threads = threads};
  if (options_.pin) cpu.cores = AssignCores(AllowedCores(), 1, threads).lane(0);
  return {.placement = cpu};
}

Status Profiler::Add(ModelSpec spec) { return Add(std::move(spec), engine_); }

Status Profiler::Add(ModelSpec spec, Engine& engine) {
  const LaneSpec lane = Lane();
  auto tried = LoadTried(std::move(spec), engine, {&lane, 1}, kTrial);
  if (!tried) return std::unexpected(std::move(tried.error()));
  for (std::string& line : tried->said) said_.push_back(std::move(line));
  for (const std::string& line : {tried->sizes, tried->rows}) {
    if (!line.empty()) said_.push_back(line);
  }
  auto subject = std::make_unique<Subject>(engine);
  subject->handle = tried->handles[0];
  subject->spec = std::move(tried->spec);
  subject->max_batch = std::max(1, subject->spec.max_batch);
  if (options_.max_batch > 0) subject->max_batch = std::min(subject->max_batch, options_.max_batch);
  subject->bytes = engine.Memory(subject->handle).weight_bytes;
  Subject& added = *subjects_.emplace_back(std::move(subject));
  for (int b = 1; b <= added.max_batch; ++b) {
    auto row = SampleRow::Make(added.spec, options_.seed + static_cast<std::uint64_t>(b), engine,
                               added.handle);
    if (!row) return std::unexpected(std::move(row.error()));
    added.rows.push_back(*std::move(row));
  }
  for (int e = 0; e < static_cast<int>(added.spec.exits.size()); ++e) {
    for (int b = 1; b <= added.max_batch; ++b) {
      Cell& cell =
          cells_.emplace_back(Cell{.subject = subjects_.size() - 1, .exit = e, .batch = b});
      cell.runs.reserve(static_cast<std::size_t>(options_.repetitions));
    }
  }
  return {};
}

void Profiler::Adopt(const Samples& earlier) {
  for (Cell& cell : cells_) {
    const auto found = earlier.find(KeyOf(cell));
    if (found == earlier.end()) continue;
    cell.runs = found->second;
    cell.spent = std::accumulate(cell.runs.begin(), cell.runs.end(), Duration{});
  }
}

Status Profiler::Run(std::function<bool(const ProfilerProgress&)> go_on) {
  Status status;
  std::thread lane([&] {
    PinThisThread(CoresOf(Lane().placement));
    status = RunRounds(go_on);
  });
  lane.join();
  return status;
}

Status Profiler::RunRounds(const std::function<bool(const ProfilerProgress&)>& go_on) {
  const auto begin = Clock::now();
  if (Status ok = WarmUp(); !ok) return ok;
  Rng rng = Rng::Stream(options_.seed, "profiler/order");
  std::vector<std::size_t> order;
  auto reported = begin;
  for (;;) {
    order.clear();
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      if (!Done(cells_[i])) order.push_back(i);
    }
    if (order.empty()) break;
    Shuffle(order, rng);
    for (const std::size_t i : order) {
      if (Status ok = TakeTurn(cells_[i]); !ok) return ok;
      const auto now = Clock::now();
      if (now - reported < kBetweenReports) continue;
      reported = now;
      if (!go_on(Progress(now - begin))) return {};
    }
  }
  go_on(Progress(Clock::now() - begin));
  return {};
}

Status Profiler::TakeTurn(Cell& cell) {
  for (int run = 0; run < options_.in_a_row && !Done(cell); ++run) {
    const auto done = RunOnce(cell);
    if (!done) return std::unexpected(done.error());
    cell.runs.push_back(done->took);
    cell.spent += done->took;
    if (!done->device) continue;
    cell.on_device.upload += done->device->upload;
    cell.on_device.kernels += done->device->kernels;
    cell.on_device.download += done->device->download;
    ++cell.said;
  }
  return {};
}

Status Profiler::WarmUp() {
  std::vector<bool> fails(subjects_.size());
  for (int run = 0; run < options_.warm_up; ++run) {
    for (const Cell& cell : cells_) {
      if (Done(cell) || fails[cell.subject]) continue;
      const auto took = RunOnce(cell);
      if (took) continue;
      fails[cell.subject] = true;
      left_out_.push_back(took.error().message);
    }
  }
  if (left_out_.empty()) return {};
  LeaveOut(fails);
  return subjects_.empty() ? Status(InvalidArgument(left_out_.front())) : Status();
}

// A model that does not run its samples must not end the measurement of the others.
void Profiler::LeaveOut(const std::vector<bool>& fails) {
  std::vector<std::size_t> now(subjects_.size());
  std::vector<std::unique_ptr<Subject>> kept;
  for (std::size_t s = 0; s < subjects_.size(); ++s) {
    now[s] = kept.size();
    if (fails[s]) {
      engine_.Unload(subjects_[s]->handle);
    } else {
      kept.push_back(std::move(subjects_[s]));
    }
  }
  subjects_ = std::move(kept);
  std::erase_if(cells_, [&](const Cell& cell) { return fails[cell.subject]; });
  for (Cell& cell : cells_) cell.subject = now[cell.subject];
}

Expected<Profiler::OneRun> Profiler::RunOn(ModelHandle handle, const Cell& cell) {
  Subject& subject = *subjects_[cell.subject];
  inputs_.clear();
  for (int i = 0; i < cell.batch; ++i) inputs_.push_back(subject.rows[i].inputs());
  const BatchJob job{BatchId{next_batch_++}, ModelId(static_cast<ModelId::rep>(cell.subject)),
                     ExitId(static_cast<ExitId::rep>(cell.exit)), inputs_};
  const auto begin = Clock::now();
  const BatchResult result = runs_.Run(subject.engine, handle, job, kLongestOfRow * cell.batch);
  const auto end = Clock::now();
  if (result.status) return OneRun{end - begin, result.device};
  const Error& error = result.status.error();
  return Fail(error.code,
              fmt::format("model '{}', exit '{}', batch {}: {}", subject.spec.name,
                          subject.spec.exits[cell.exit].name, cell.batch, error.message));
}

bool Profiler::Done(const Cell& cell) const {
  const int runs = static_cast<int>(cell.runs.size());
  if (runs >= options_.repetitions) return true;
  return runs >= options_.least && cell.spent >= options_.budget;
}

bool Profiler::complete() const {
  return std::all_of(cells_.begin(), cells_.end(), [&](const Cell& cell) { return Done(cell); });
}

CellKey Profiler::KeyOf(const Cell& cell) const {
  const Subject& subject = *subjects_[cell.subject];
  return {subject.spec.name, subject.bytes, subject.spec.exits[cell.exit].name, cell.batch};
}

Duration Profiler::Remaining(const Cell& cell) const {
  if (cell.runs.empty() || Done(cell)) return {};
  const std::int64_t runs = static_cast<std::int64_t>(cell.runs.size());
  const Duration mean = cell.spent / runs;
  const Duration all = mean * options_.repetitions;
  const Duration bound = std::max(options_.budget, mean * options_.least);
  return std::max(Duration{}, std::min(all, bound) - cell.spent);
}

ProfilerProgress Profiler::Progress(Duration elapsed) const {
  Duration spent{};
  Duration remaining{};
  std::int64_t unknown = 0;  // cells that have not run yet take as long as the others, on average
  for (const Cell& cell : cells_) {
    spent += cell.spent;
    remaining += Remaining(cell);
    if (cell.runs.empty()) ++unknown;
  }
  const std::int64_t known = static_cast<std::int64_t>(cells_.size()) - unknown;
  if (known > 0) remaining += (spent + remaining) / known * unknown;
  const double whole = ToSeconds(spent + remaining);
  return {whole > 0 ? ToSeconds(spent) / whole : 0, elapsed, remaining};
}

Samples Profiler::samples() const {
  Samples all;
  for (const Cell& cell : cells_) all[KeyOf(cell)] = cell.runs;
  return all;
}

std::vector<ProfiledModel> Profiler::Result() const {
  std::vector<ProfiledModel> models;
  for (const auto& subject : subjects_) {
    const MemoryUse memory = subject->engine.Memory(subject->handle);
    ProfiledModel& model = models.emplace_back();
    model.name = subject->spec.name;
    model.max_batch = subject->max_batch;
    model.slo_ms = ToMillis(subject->spec.slo);
    model.weight_bytes = memory.weight_bytes;
    model.peak_memory_bytes = memory.peak_bytes;
    for (const ExitSpec& exit : subject->spec.exits) {
      model.exits.push_back({.name = exit.name, .accuracy = exit.accuracy});
    }
  }
  for (const Cell& cell : cells_) {
    ProfileCell& made = models[cell.subject].exits[cell.exit].cells.emplace_back();
    made = Condense(cell.runs);
    if (cell.said == 0) continue;
    const auto mean = [&](Duration sum) { return ToMillis(sum) / cell.said; };
    made.device = ProfiledDeviceTimes{mean(cell.on_device.upload), mean(cell.on_device.kernels),
                                      mean(cell.on_device.download)};
  }
  for (ProfiledModel& model : models) {
    for (ProfiledExit& exit : model.exits) {
      LetRise(exit.cells);
      Fit(exit);
    }
  }
  return models;
}

Status Profiler::AddUse(std::size_t s, Engine& examiner, ModelHandle handle, int exit,
                        const MachinePeaks& peaks, ProfiledExit& profiled) {
  Subject& subject = *subjects_[s];
  std::vector<RowInputs> rows;
  for (const SampleRow& row : subject.rows) rows.push_back(row.inputs());
  std::vector<BatchJob> jobs;
  for (std::size_t b = 1; b <= profiled.cells.size(); ++b) {
    jobs.push_back({BatchId{next_batch_++}, ModelId(static_cast<ModelId::rep>(s)),
                    ExitId(static_cast<ExitId::rep>(exit)), std::span(rows).first(b)});
  }
  const auto works = examiner.Examine(handle, jobs);
  if (!works) return std::unexpected(works.error());
  CHECK(works->size() == jobs.size(), "an engine answers for each job");
  for (std::size_t b = 0; b < jobs.size(); ++b) {
    ProfileCell& cell = profiled.cells[b];
    const double ms = cell.device ? cell.device->kernels_ms : cell.p50_ms;
    cell.throughput = SharesOf((*works)[b], ms / 1e3, peaks);
  }
  return {};
}

// One line for a model: on a busy machine every cell would have one.
std::optional<std::string> Profiler::UncertaintyOf(std::size_t s) const {
  int cells = 0;
  int moved = 0;
  double most = 0;
  const Cell* worst = nullptr;
  for (const Cell& cell : cells_) {
    if (cell.subject != s) continue;
    const double drift = MedianDrift(cell.runs);
    ++cells;
    moved += drift > kMostUncertainty ? 1 : 0;
    if (drift <= most) continue;
    most = drift;
    worst = &cell;
  }
  if (moved == 0) return std::nullopt;
  const ModelSpec& spec = subjects_[s]->spec;
  return fmt::format(
      "model '{}': what its batches use is uncertain for {} of {} cells: the median latency of "
      "batch {} of exit {}, which its shares go by, moved by {:.0f} % while it was measured "
      "(bound: {:.0f} %); profile again while nothing else runs, or with more --repetitions and "
      "--budget",
      spec.name, moved, cells, worst->batch, spec.exits[static_cast<std::size_t>(worst->exit)].name,
      100 * most, 100 * kMostUncertainty);
}

std::vector<std::string> Profiler::AddUses(const MachinePeaks& peaks,
                                           std::vector<ProfiledModel>& models) {
  std::vector<std::string> warnings;
  for (std::size_t s = 0; s < subjects_.size(); ++s) {
    ProfiledModel& model = models[s];
    Status found;
    for (std::size_t e = 0; e < model.exits.size() && found; ++e) {
      found = AddUse(s, subjects_[s]->engine, subjects_[s]->handle, static_cast<int>(e), peaks,
                     model.exits[e]);
    }
    if (found) {
      model.resources_source = SourceOf(peaks, engine_.traits().name);
      if (auto uncertain = UncertaintyOf(s)) warnings.push_back(*std::move(uncertain));
      continue;
    }
    warnings.push_back(
        fmt::format("model '{}' gets no resource figures: {}", model.name, found.error().message));
  }
  return warnings;
}

}  // namespace tactus
