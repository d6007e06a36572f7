// The scheduler of Symphony's Section 4.2 on real threads, under load made in this process.
//
// Lanes are emulated: a batch takes the profiled latency, and then its lane is free. The models are
// those of Table 3 (GTX 1080 Ti), in turns where there are more, each with its SLO and with the
// largest batch that its SLO allows. Millions of requests a second are work for thousands of those
// GPUs; to ask them of any number of lanes, latencies (not SLOs) are divided by one factor, so that
// the lanes could sustain kCapacity at full batches. Dispatched and dropped are counted apart: a
// dropped request is the cheaper one.
//
// Line rate: the source pushes as fast as the shards read. Paced: kPacedRate. Processor time is
// that of the scheduler's threads, their looking for work included; the source has a thread of its
// own, which is not counted. Lateness: from the instant at which a batch was schedulable and a lane
// free to the call of its outbox.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/allocation_hook.h"
#include "base/rng.h"
#include "base/source_path_for_test.h"
#include "metrics/report.h"
#include "program.h"
#include "shards/sharded_scheduler.h"
#include "workload/profile_file.h"

namespace {
std::atomic<std::uint64_t> allocations{0};
}  // namespace

void tactus::OnAllocation() noexcept { allocations.fetch_add(1, std::memory_order_relaxed); }

namespace tactus {
namespace {

constexpr const char* kProgram = "tactus_bench_scheduler";
constexpr double kCapacity = 16e6;  // requests a second that the lanes could sustain
constexpr double kPacedRate = 1e6;  // requests a second
constexpr double kBar = 5e6;        // requests a second of processor time, 35 models on 512 lanes
constexpr double kSpread = 0.8;     // of that, at least, with more lanes or more models

const std::string kProfile = SourcePath("scenarios/profiles/symphony-1080ti.json");
constexpr const char* kAlone = "ResNet50";  // where there is one model only

// The published setting, and the one with a flat top (docs/research/papers/symphony.md).
struct Setting {
  const char* policy;
  SymphonyOptions options;
};
const Setting kPublished = {"symphony:gather=prefix,lead=0", {}};
const Setting kFlatTop = {
    "symphony:gather=window,aim=0.8,lead=0.1",
    {.candidate = {.gather = Gather::kWindow}, .lead_share = 0.1, .aim = 0.8}};

struct Size {
  std::size_t models;
  std::size_t lanes;
  std::uint32_t shards;
};

constexpr std::array kSizesWithABar = {Size{35, 512, 1}, Size{35, 4096, 1}, Size{2048, 512, 1}};

// What is served: the models and their latencies on these lanes.
struct Zoo {
  std::vector<Model> models;
  ProfileTable profile;
  double faster = 1;  // than the profiled GPU, each lane
};

// The largest batch whose latency the SLO allows.
std::size_t LargestBatch(const ProfiledModel& model) {
  const std::vector<ProfileCell>& cells = model.exits.back().cells;
  std::size_t batch = 1;
  while (batch < cells.size() && cells[batch].mean_ms <= model.slo_ms) ++batch;
  return batch;
}

Zoo MakeZoo(const ProfileFile& profile, const Size& size) {
  std::vector<const ProfiledModel*> kinds;
  for (const ProfiledModel& model : profile.models) {
    if (size.models > 1 || model.name == kAlone) kinds.push_back(&model);
  }
  CHECK(!kinds.empty(), "the profile has the model that serves alone");
  Duration per_request{};  // of all models together, at full batches
  for (std::size_t m = 0; m < size.models; ++m) {
    const ProfiledModel& kind = *kinds[m % kinds.size()];
    const std::size_t batch = LargestBatch(kind);
    per_request += FromMillis(kind.exits.back().cells[batch - 1].mean_ms) / batch;
  }
  const double mean = ToSeconds(per_request) / static_cast<double>(size.models);
  Zoo zoo{.faster = kCapacity * mean / static_cast<double>(size.lanes)};
  std::vector<ProfileTable::ModelRows> rows;
  for (std::size_t m = 0; m < size.models; ++m) {
    const ProfiledModel& kind = *kinds[m % kinds.size()];
    const int batch = static_cast<int>(LargestBatch(kind));
    zoo.models.push_back(
        {.name = kind.name, .slo = FromMillis(kind.slo_ms), .max_batch = batch, .exits = {{}}});
    ProfileTable::ModelRows row{.exits = 1, .max_batch = batch};
    for (int b = 1; b <= batch; ++b) {
      row.latency.push_back(FromMillis(kind.exits.back().cells[b - 1].mean_ms / zoo.faster));
    }
    rows.push_back(std::move(row));
  }
  zoo.profile = ProfileTable(1, rows);
  return zoo;
}

// Counts of durations by their first five binary digits: 3 % apart.
class Durations {
 public:
  void Add(Duration d) {
    ++counts_[BucketOf(static_cast<std::uint64_t>(std::max<std::int64_t>(d.count(), 0)))];
  }
  void Add(const Durations& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  }
  // The upper end of the bucket that holds the quantile; 0 when nothing was added.
  Duration Quantile(double q) const {
    std::uint64_t all = 0;
    for (const std::uint64_t count : counts_) all += count;
    auto left = static_cast<std::uint64_t>(q * static_cast<double>(all));
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (left < counts_[i]) return Nanos(UpperEnd(i));
      left -= counts_[i];
    }
    return {};
  }

 private:
  static constexpr int kDigits = 5;
  static std::size_t BucketOf(std::uint64_t nanos) {
    const int shift = std::max(0, static_cast<int>(std::bit_width(nanos)) - kDigits - 1);
    return (static_cast<std::size_t>(shift) << kDigits) + (nanos >> shift);
  }
  static std::int64_t UpperEnd(std::size_t bucket) {
    const std::size_t shift = bucket < (2u << kDigits) ? 0 : (bucket >> kDigits) - 1;
    const std::size_t digits = bucket - (shift << kDigits);
    return static_cast<std::int64_t>(((digits + 1) << shift) - 1);
  }

  std::array<std::uint64_t, 64u << kDigits> counts_{};
};

// One shard's; its thread writes, others read the counts while it runs.
class Tally final : public ShardOutbox {
 public:
  void Launch(const GrantedBatch& batch) override {
    Add(dispatched, batch.requests.size());
    Add(batches, 1);
    Add(busy_nanos, static_cast<std::uint64_t>((batch.end - batch.start).count()));
    if (recording.load(std::memory_order_relaxed)) {
      lateness.Add(ShardedScheduler::Now() - batch.due);
    }
  }
  void Reject(ModelId, const Request&, DropReason, TimePoint) override { Add(dropped, 1); }

  std::atomic<bool> recording{false};
  std::atomic<std::uint64_t> dispatched{0};
  std::atomic<std::uint64_t> dropped{0};
  std::atomic<std::uint64_t> batches{0};
  std::atomic<std::uint64_t> busy_nanos{0};
  Durations lateness;  // read after the end

 private:
  static void Add(std::atomic<std::uint64_t>& count, std::uint64_t n) {
    count.store(count.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
};

struct Counts {
  TimePoint at{};
  double dispatched = 0;
  double dropped = 0;
  double batches = 0;
  double busy_s = 0;
  double shard_cpu_s = 0;
  double rank_cpu_s = 0;
  double allocations = 0;
};

Counts Read(ShardedScheduler& scheduler, const std::vector<Tally>& tallies) {
  Counts counts{.at = ShardedScheduler::Now(),
                .allocations = static_cast<double>(allocations.load())};
  for (const Tally& tally : tallies) {
    counts.dispatched += static_cast<double>(tally.dispatched.load(std::memory_order_relaxed));
    counts.dropped += static_cast<double>(tally.dropped.load(std::memory_order_relaxed));
    counts.batches += static_cast<double>(tally.batches.load(std::memory_order_relaxed));
    counts.busy_s += 1e-9 * static_cast<double>(tally.busy_nanos.load(std::memory_order_relaxed));
  }
  for (std::uint32_t i = 0; i < tallies.size(); ++i) {
    counts.shard_cpu_s += ToSeconds(scheduler.ShardCpuTime(i));
  }
  counts.rank_cpu_s = ToSeconds(scheduler.RankCpuTime());
  return counts;
}

// The source: requests of random models, all equally often. `rate` 0 is line rate.
class Source {
 public:
  Source(ShardedScheduler& scheduler, const Zoo& zoo, std::uint32_t shards, double rate)
      : scheduler_(scheduler), rate_(rate), next_(shards) {
    for (const Model& model : zoo.models) slos_.push_back(model.slo);
    Rng rng = Rng::Stream(1, "bench/scheduler");
    sequences_.resize(shards);
    for (std::uint32_t shard = 0; shard < shards; ++shard) {
      for (std::size_t i = 0; i < kSequence; ++i) {
        const std::size_t own = (zoo.models.size() - shard + shards - 1) / shards;
        if (own == 0) break;
        sequences_[shard].push_back(static_cast<ModelId::rep>(rng.Below(own) * shards + shard));
      }
    }
    thread_ = std::thread([this] { Run(); });
  }
  void Stop() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
  }

 private:
  static constexpr std::size_t kSequence = 1 << 15;
  static constexpr std::size_t kAtOnce = 64;

  void Run() {
    const TimePoint begin = ShardedScheduler::Now();
    while (!stop_.load(std::memory_order_relaxed)) {
      const TimePoint now = ShardedScheduler::Now();
      const double due = rate_ == 0 ? 1e18 : rate_ * ToSeconds(now - begin);
      std::size_t pushed = 0;
      for (std::uint32_t shard = 0; shard < sequences_.size(); ++shard) {
        if (sequences_[shard].empty() || static_cast<double>(sent_) >= due) continue;
        const double wanted = std::min<double>(kAtOnce, due - static_cast<double>(sent_) + 1);
        pushed += Push(shard, static_cast<std::size_t>(wanted), now);
      }
      if (pushed == 0) std::this_thread::sleep_for(Micros(5));
    }
  }
  std::size_t Push(std::uint32_t shard, std::size_t most, TimePoint now) {
    const std::vector<ModelId::rep>& sequence = sequences_[shard];
    const std::span<Arrival> room = scheduler_.arrivals(shard).Writable(most);
    for (Arrival& arrival : room) {
      const ModelId::rep m = sequence[next_[shard]++ % kSequence];
      arrival.model = ModelId{m};
      arrival.request = {.id = RequestId{++sent_}, .arrival = now, .deadline = now + slos_[m]};
    }
    scheduler_.arrivals(shard).Publish(room.size());
    return room.size();
  }

  ShardedScheduler& scheduler_;
  const double rate_;
  std::vector<Duration> slos_;
  std::vector<std::vector<ModelId::rep>> sequences_;  // by shard
  std::vector<std::size_t> next_;
  std::uint64_t sent_ = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

struct Round {
  Counts counts;  // in the span that counts
  double seconds = 0;
  Durations lateness;

  double cpu_s() const { return counts.shard_cpu_s + counts.rank_cpu_s; }
  double requests() const { return counts.dispatched + counts.dropped; }
  double per_cpu_second() const { return requests() / cpu_s(); }
};

Round Measure(const Zoo& zoo, const Size& size, const Setting& setting, double rate,
              double seconds) {
  std::vector<Tally> tallies(size.shards);
  std::vector<ShardOutbox*> outboxes;
  for (Tally& tally : tallies) outboxes.push_back(&tally);
  // Together the queues hold some milliseconds of line rate.
  const std::size_t queue =
      std::bit_ceil(std::max<std::size_t>((std::size_t{1} << 17) / size.models, 64));
  ShardedScheduler scheduler({.shards = size.shards,
                              .lanes = size.lanes,
                              .shard = {.policy = setting.options, .queue_capacity = queue}},
                             zoo.models, zoo.profile, outboxes);
  scheduler.Start();
  Source source(scheduler, zoo, size.shards, rate);
  std::this_thread::sleep_for(FromSeconds(0.15));
  for (Tally& tally : tallies) tally.recording = true;
  const Counts first = Read(scheduler, tallies);
  std::this_thread::sleep_for(FromSeconds(seconds));
  const Counts last = Read(scheduler, tallies);
  for (Tally& tally : tallies) tally.recording = false;
  source.Stop();
  scheduler.Stop();
  Round round{.counts = {.dispatched = last.dispatched - first.dispatched,
                         .dropped = last.dropped - first.dropped,
                         .batches = last.batches - first.batches,
                         .busy_s = last.busy_s - first.busy_s,
                         .shard_cpu_s = last.shard_cpu_s - first.shard_cpu_s,
                         .rank_cpu_s = last.rank_cpu_s - first.rank_cpu_s,
                         .allocations = last.allocations - first.allocations},
              .seconds = ToSeconds(last.at - first.at)};
  for (const Tally& tally : tallies) round.lateness.Add(tally.lateness);
  return round;
}

std::string Where(const Size& size) {
  return fmt::format("{} models, {} lanes, {} shard{}", size.models, size.lanes, size.shards,
                     size.shards == 1 ? "" : "s");
}

// One line; all figures but the quantiles are of the round's span.
void Print(const Size& size, const Round& r) {
  const double busy = r.counts.busy_s / r.seconds / static_cast<double>(size.lanes);
  fmt::print("{:>6} {:>5} {:>6}  {:>8.2f}  {:>12.2f}  {:>9.2f}  {:>7.0f}  {:>5.1f}  {:>3.0f}%",
             size.models, size.lanes, size.shards, r.per_cpu_second() / 1e6,
             r.counts.dispatched / r.seconds / 1e6, r.counts.dropped / r.seconds / 1e6,
             1e9 * r.cpu_s() / r.requests(), r.counts.dispatched / std::max(1.0, r.counts.batches),
             100 * busy);
  fmt::print("  {:>6.2f} {:>6.2f} {:>9.0f} {:>8.0f} {:>8.0f} {:>8.0f}\n",
             r.counts.shard_cpu_s / r.seconds, r.counts.rank_cpu_s / r.seconds,
             ToMicros(r.lateness.Quantile(0.5)), ToMicros(r.lateness.Quantile(0.99)),
             ToMicros(r.lateness.Quantile(0.9999)), r.counts.allocations);
  std::fflush(stdout);
}

void PrintHeader(const std::string& what) {
  fmt::print(
      "\n{}\n"
      "                         millions of requests                            CPUs used by   "
      "  dispatched late by (us)   allo-\n"
      "models lanes shards   a CPU-s  dispatched/s  dropped/s  ns each  batch  busy  shards   rank"
      "       P50      P99   P99.99  cations\n",
      what);
}

// Sorts them.
double Median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string LoadAverage() {
  std::ifstream file("/proc/loadavg");
  std::string one, five;
  file >> one >> five;
  return one + " over a minute, " + five + " over five";
}

RunReport ToRun(const Size& size, const Setting& setting, const Round& r, const std::string& load) {
  RunReport run{.policy = setting.policy,
                .scenario = Where(size) + ", " + load,
                .source = "in-process load, emulated lanes",
                .profile_provenance = "Symphony, Table 3, divided",
                .seed = 1,
                .commit = BuildCommit(),
                .machine = MachineKind(),
                .duration_s = r.seconds};
  const auto put = [&](const char* name, double value) {
    run.settings[name] = fmt::format("{:.6g}", value);
  };
  put("models", static_cast<double>(size.models));
  put("lanes", static_cast<double>(size.lanes));
  put("shards", size.shards);
  put("requests_per_cpu_second", r.per_cpu_second());
  put("dispatched_per_second", r.counts.dispatched / r.seconds);
  put("dropped_per_second", r.counts.dropped / r.seconds);
  put("shards_cpus", r.counts.shard_cpu_s / r.seconds);
  put("rank_cpus", r.counts.rank_cpu_s / r.seconds);
  put("lateness_p50_us", ToMicros(r.lateness.Quantile(0.5)));
  put("lateness_p99_us", ToMicros(r.lateness.Quantile(0.99)));
  put("lateness_p9999_us", ToMicros(r.lateness.Quantile(0.9999)));
  put("allocations", r.counts.allocations);
  run.all.requests = static_cast<std::int64_t>(r.requests());
  run.all.mean_batch = r.counts.dispatched / std::max(1.0, r.counts.batches);
  return run;
}

struct Options {
  int rounds = 7;
  double seconds = 0.4;
  std::string json;
};

class Bench {
 public:
  Bench(const Options& options, const ProfileFile& profile)
      : options_(options), profile_(profile) {}

  int Run() {
    fmt::print("load average at the start: {}; {} threads of the machine\n", LoadAverage(),
               std::thread::hardware_concurrency());
    CheckBars();
    TakeFlatTop();
    Grid("every size at line rate", 0, "line rate");
    Grid("every size at 1 M requests a second", kPacedRate, "1 M requests/s");
    report_.checks.push_back({"operator new called while requests are scheduled", allocations_,
                              "== 0", allocations_ == 0});
    fmt::print("\nload average at the end: {}\n", LoadAverage());
    return Conclude(kProgram, report_, options_.json);
  }

 private:
  Round Take(const Size& size, const Setting& setting, double rate, const std::string& load) {
    const Round round = Measure(MakeZoo(profile_, size), size, setting, rate, options_.seconds);
    Print(size, round);
    report_.runs.push_back(ToRun(size, setting, round, load));
    allocations_ += round.counts.allocations;
    return round;
  }

  // In turns, so that all three see the same neighbours on the machine; the median round of each.
  // Not the best: a round in which more is dropped is a quick one.
  void CheckBars() {
    std::array<std::vector<double>, 3> rates;
    std::vector<double> dispatched;
    PrintHeader(fmt::format("{} rounds of {:g} s at line rate, in turns", options_.rounds,
                            options_.seconds));
    for (int round = 0; round < options_.rounds; ++round) {
      for (std::size_t i = 0; i < kSizesWithABar.size(); ++i) {
        const Round taken = Take(kSizesWithABar[i], kPublished, 0, "line rate");
        rates[i].push_back(taken.per_cpu_second());
        if (i == 0) dispatched.push_back(taken.counts.dispatched / taken.cpu_s());
      }
    }
    std::array<double, 3> medians;
    for (std::size_t i = 0; i < kSizesWithABar.size(); ++i) {
      medians[i] = Median(rates[i]);
      fmt::print("{}: {:.2f} to {:.2f}, median {:.2f} M requests a CPU-second\n",
                 Where(kSizesWithABar[i]), rates[i].front() / 1e6, rates[i].back() / 1e6,
                 medians[i] / 1e6);
    }
    report_.checks = {
        AtLeast("requests a CPU-second, 35 models, 512 lanes", medians[0], kBar),
        AtLeast("dispatched alone, the same size", Median(dispatched), kBar),
        AtLeast("requests a CPU-second, 35 models, 4096 lanes", medians[1], kSpread * kBar),
        AtLeast("requests a CPU-second, 2048 models, 512 lanes", medians[2], kSpread * kBar),
        AtLeast("4096 lanes over 512", medians[1] / medians[0], kSpread),
        AtLeast("2048 models over 35", medians[2] / medians[0], kSpread)};
  }

  void TakeFlatTop() {
    PrintHeader(fmt::format("{}, at line rate", kFlatTop.policy));
    std::vector<double> rates;
    for (const Size& size : kSizesWithABar) {
      rates.push_back(Take(size, kFlatTop, 0, "line rate").per_cpu_second());
    }
    report_.checks.push_back(
        AtLeast("requests a CPU-second, 35 models, 512 lanes, flat top", rates[0], kBar));
  }

  void Grid(const std::string& what, double rate, const std::string& load) {
    PrintHeader(what);
    for (const std::size_t models : {1u, 35u, 2048u}) {
      for (const std::size_t lanes : {8u, 512u, 4096u}) {
        for (const std::uint32_t shards : {1u, 2u}) {
          // With one model a second shard would have none.
          if (models >= shards) Take({models, lanes, shards}, kPublished, rate, load);
        }
      }
    }
  }

  const Options options_;
  const ProfileFile& profile_;
  Report report_;
  double allocations_ = 0;
};

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) {
  CLI::App app{"How many requests the sharded scheduler takes, and how late it dispatches."};
  tactus::Options options;
  app.add_option("--json", options.json, "Write runs and checks to this file");
  app.add_option("--rounds", options.rounds, "Of the three sizes with a bar")
      ->check(CLI::PositiveNumber);
  app.add_option("--seconds", options.seconds, "Of each round")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const auto profile = tactus::LoadProfile(tactus::kProfile);
  if (!profile) return tactus::CannotRun(tactus::kProgram, profile.error());
  return tactus::Bench(options, *profile).Run();
}
