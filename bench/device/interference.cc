// How much batches slow each other that are on the device at once: pairs with half of its SMs each,
// as gpu-lets has them, and pairs and fours on streams of the whole device, as Strait does. To the
// pairs in halves gpu-lets' linear model is fitted, and its error is that of pairs which it has not
// seen.
#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/rng.h"
#include "core/plan.h"
#include "device/parts.h"
#include "planners/gpulet/interference_fit.h"
#include "profiling/one_answer.h"
#include "profiling/sample_row.h"
#include "program.h"

namespace tactus {
namespace {

constexpr int kStreams = 4;  // batches at once on the whole device
constexpr double kHeldOut = 0.3;
// The papers': 90 % of pairs lose less than 18 % (gpu-lets, Figure 6), and of 90 % of the pairs the
// linear model is off by at most 10.26 % (Figure 9).
constexpr double kPaperOverhead = 0.18;
constexpr double kPaperError = 0.1026;

// A net with one size of batch, loaded wherever it may run.
struct Subject {
  std::string name;
  KernelNet net;
  int batch = 1;
  std::array<ModelHandle, 2> halves;
  std::array<ModelHandle, kStreams> whole;
  std::vector<SampleRow> rows;
  std::array<double, 2> alone_in_half{};  // seconds
  double alone = 0;
};

struct Runner {
  const Subject* subject = nullptr;
  ModelHandle handle;
};

// How many times longer than alone.
struct Slowdown {
  std::size_t subject = 0;
  std::size_t other = 0;  // of a pair
  int side = 0;
  bool held_out = false;
  double factor = 1;
};

double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

class InterferenceBench {
 public:
  InterferenceBench(std::unique_ptr<Engine> engine, const Bench& bench)
      : engine_(std::move(engine)), bench_(bench) {}

  Status Load(const std::vector<std::string>& nets, const std::vector<int>& batches);
  Status MeasureAlone();
  Status MeasurePairs();
  Status MeasureFours();
  Status Judge(const DevicePeaks& peaks) const;

 private:
  Expected<double> RunOnce(const Runner& runner);
  // Runs of all of them at once, each on a thread, until each has run a few times and `seconds` are
  // over: what the kernels of those took, in seconds, beside which all the others ran.
  Status RunTogether(const std::vector<Runner>& runners, double seconds,
                     std::vector<double>& means);
  void Say(const char* what, const std::vector<Slowdown>& slowdowns) const;
  double Overhead(const std::vector<Slowdown>& slowdowns, double part) const;

  const std::unique_ptr<Engine> engine_;
  const Bench& bench_;
  std::vector<Subject> subjects_;
  std::vector<Slowdown> in_halves_;
  std::vector<Slowdown> pairs_;
  std::vector<Slowdown> fours_;
  std::atomic<std::uint64_t> next_batch_{0};
};

Status InterferenceBench::Load(const std::vector<std::string>& nets,
                               const std::vector<int>& batches) {
  for (const std::string& name : nets) {
    Subject loaded{.name = name, .net = NetNamed(name)};
    ModelSpec spec = SpecOf(loaded.net, name);
    for (std::size_t i = 0; i < 2; ++i) {
      const auto half = engine_->Load(
          spec, {.fraction = 0.5, .placement = CudaPlacement{0.5 * static_cast<double>(i)}});
      if (!half) return std::unexpected(half.error());
      loaded.halves[i] = *half;
    }
    for (ModelHandle& handle : loaded.whole) {
      const auto whole = engine_->Load(spec, {.placement = CudaPlacement{}});
      if (!whole) return std::unexpected(whole.error());
      handle = *whole;
    }
    for (const int batch : batches) {
      Subject& subject = subjects_.emplace_back();
      subject.name = fmt::format("{} x {}", name, batch);
      subject.net = loaded.net;
      subject.batch = batch;
      subject.halves = loaded.halves;
      subject.whole = loaded.whole;
      for (int i = 0; i < batch; ++i) {
        auto row = SampleRow::Make(spec, bench_.options.seed + static_cast<std::uint64_t>(i));
        if (!row) return std::unexpected(row.error());
        subject.rows.push_back(*std::move(row));
      }
    }
  }
  return {};
}

Expected<double> InterferenceBench::RunOnce(const Runner& runner) {
  std::vector<RowInputs> inputs;
  for (const SampleRow& row : runner.subject->rows) inputs.push_back(row.inputs());
  OneAnswer answer;
  engine_->Submit(runner.handle, {BatchId{next_batch_++}, ModelId{0}, ExitId{0}, inputs}, answer);
  const BatchResult result = answer.Wait();
  if (!result.status) return std::unexpected(result.status.error());
  return ToSeconds(result.infer);
}

Status InterferenceBench::RunTogether(const std::vector<Runner>& runners, double seconds,
                                      std::vector<double>& means) {
  const std::size_t least = bench_.options.quick ? 2 : 5;
  std::vector<std::vector<double>> took(runners.size());
  std::vector<Status> statuses(runners.size());
  std::atomic<std::size_t> content{0};
  std::atomic<bool> stop{false};
  std::barrier start(static_cast<std::ptrdiff_t>(runners.size()));
  const auto loop = [&](std::size_t i) {
    bool said = false;
    start.arrive_and_wait();
    const auto begin = BenchClock::now();
    for (bool first = true; !stop.load(); first = false) {
      const auto run = RunOnce(runners[i]);
      if (!run) statuses[i] = std::unexpected(run.error());
      if (!run) stop.store(true);
      if (stop.load()) break;  // another may have ended meanwhile
      if (!first) took[i].push_back(*run);
      if (said || took[i].size() < least || NanosSince(begin) < seconds * 1e9) continue;
      said = true;
      if (content.fetch_add(1) + 1 == runners.size()) stop.store(true);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < runners.size(); ++i) threads.emplace_back(loop, i);
  }
  means.clear();
  for (std::size_t i = 0; i < runners.size(); ++i) {
    if (!statuses[i]) return statuses[i];
    means.push_back(MeanOf(took[i]));
  }
  return {};
}

Status InterferenceBench::MeasureAlone() {
  const double seconds = 0.025 * bench_.options.seconds;
  std::vector<double> mean;
  for (Subject& subject : subjects_) {
    for (std::size_t i = 0; i < 2; ++i) {
      if (Status ok = RunTogether({{&subject, subject.halves[i]}}, seconds, mean); !ok) return ok;
      subject.alone_in_half[i] = mean[0];
    }
    if (Status ok = RunTogether({{&subject, subject.whole[0]}}, seconds, mean); !ok) return ok;
    subject.alone = mean[0];
  }
  return {};
}

Status InterferenceBench::MeasurePairs() {
  const double seconds = 0.035 * bench_.options.seconds;
  Rng rng = Rng::Stream(bench_.options.seed, "gpu/held-out");
  std::vector<double> means;
  for (std::size_t a = 0; a < subjects_.size(); ++a) {
    for (std::size_t b = a; b < subjects_.size(); ++b) {
      const std::array<std::size_t, 2> both = {a, b};
      const bool held_out = rng.Uniform() < kHeldOut;
      Status ok = RunTogether(
          {{&subjects_[a], subjects_[a].halves[0]}, {&subjects_[b], subjects_[b].halves[1]}},
          seconds, means);
      if (!ok) return ok;
      for (std::size_t i = 0; i < 2; ++i) {
        in_halves_.push_back({both[i], both[1 - i], static_cast<int>(i), held_out,
                              means[i] / subjects_[both[i]].alone_in_half[i]});
      }
      ok = RunTogether(
          {{&subjects_[a], subjects_[a].whole[0]}, {&subjects_[b], subjects_[b].whole[1]}}, seconds,
          means);
      if (!ok) return ok;
      for (std::size_t i = 0; i < 2; ++i) {
        pairs_.push_back({both[i], both[1 - i], static_cast<int>(i), held_out,
                          means[i] / subjects_[both[i]].alone});
      }
    }
  }
  return {};
}

Status InterferenceBench::MeasureFours() {
  const int count = bench_.options.quick ? 2 : 40;
  Rng rng = Rng::Stream(bench_.options.seed, "gpu/fours");
  std::vector<double> means;
  for (int n = 0; n < count; ++n) {
    std::vector<Runner> runners;
    std::vector<std::size_t> drawn;
    for (int i = 0; i < kStreams; ++i) {
      drawn.push_back(rng.Below(subjects_.size()));
      const Subject& subject = subjects_[drawn.back()];
      runners.push_back({&subject, subject.whole[static_cast<std::size_t>(i)]});
    }
    if (Status ok = RunTogether(runners, 0.05 * bench_.options.seconds, means); !ok) return ok;
    for (std::size_t i = 0; i < runners.size(); ++i) {
      fours_.push_back(
          {drawn[i], 0, static_cast<int>(i), false, means[i] / subjects_[drawn[i]].alone});
    }
  }
  return {};
}

double InterferenceBench::Overhead(const std::vector<Slowdown>& slowdowns, double part) const {
  std::vector<double> overheads;
  for (const Slowdown& each : slowdowns) overheads.push_back(std::max(each.factor - 1, 0.0));
  std::ranges::sort(overheads);
  return QuantileOf(overheads, part);
}

void InterferenceBench::Say(const char* what, const std::vector<Slowdown>& slowdowns) const {
  fmt::print("  {}: {} batches lose {:.1f} % (P50), {:.1f} % (P90), {:.1f} % (P99)\n", what,
             slowdowns.size(), 100 * Overhead(slowdowns, 0.5), 100 * Overhead(slowdowns, 0.9),
             100 * Overhead(slowdowns, 0.99));
}

Status InterferenceBench::Judge(const DevicePeaks& peaks) const {
  Say("pairs in halves", in_halves_);
  Say("pairs on streams", pairs_);
  Say("fours on streams", fours_);
  bench_.Add(
      AtMost("interference: what 90 % of batches lose at most in pairs in halves (paper 18 %)",
             Overhead(in_halves_, 0.9), kPaperOverhead));
  bench_.Add(Reported("interference: P99 of the same", Overhead(in_halves_, 0.99)));
  bench_.Add(Reported("interference: P90 in pairs on streams", Overhead(pairs_, 0.9)));
  bench_.Add(Reported("interference: P99 in pairs on streams", Overhead(pairs_, 0.99)));
  bench_.Add(Reported("interference: P90 in fours on streams", Overhead(fours_, 0.9)));
  bench_.Add(Reported("interference: P99 in fours on streams", Overhead(fours_, 0.99)));

  const auto use = [&](std::size_t s, int side) {
    const Subject& subject = subjects_[s];
    return ResourceShares(subject.net, 0, subject.batch,
                          subject.alone_in_half[static_cast<std::size_t>(side)], peaks,
                          bench_.device.facts);
  };
  SplitSamples split;
  for (const Slowdown& each : in_halves_) {
    const InterferenceSample sample{use(each.subject, each.side), use(each.other, 1 - each.side),
                                    each.factor};
    (each.held_out ? split.held_out : split.fitted).push_back(sample);
  }
  const auto model = FitInterference(split.fitted);
  if (!model) return std::unexpected(model.error());
  const std::vector<double> errors = RelativeErrors(*model, split.held_out);
  const std::vector<double> without = RelativeErrors(InterferenceModel{}, split.held_out);
  fmt::print("  linear model of {} batches, of {} held out: error P90 {:.2f} %, {:.2f} % without\n",
             split.fitted.size(), split.held_out.size(), 100 * QuantileOf(errors, 0.9),
             100 * QuantileOf(without, 0.9));
  bench_.Add(
      AtMost("interference: error of the linear model, of 90 % of those held out (paper 10.26 %)",
             QuantileOf(errors, 0.9), kPaperError));
  return {};
}

}  // namespace

Status MeasureInterference(const Bench& bench) {
  const auto peaks = PeaksOf(bench.device);
  if (!peaks) return std::unexpected(peaks.error());
  fmt::print("  peaks: {:.3g} multiply-adds/s, {:.3g} B/s of L2, {:.3g} B/s of memory\n",
             peaks->fmas, peaks->l2_bytes, peaks->memory_bytes);
  auto engine = MakeNetEngine(bench.device, {});
  if (!engine) return std::unexpected(engine.error());
  InterferenceBench measured(*std::move(engine), bench);
  const bool quick = bench.options.quick;
  const std::vector<std::string> nets =
      quick ? std::vector<std::string>{"quick", "thin", "cached"}
            : std::vector<std::string>{"tiny", "quick", "wide", "thin", "stream", "cached"};
  const std::vector<int> batches = quick ? std::vector<int>{1} : std::vector<int>{1, 8};
  Status ok = measured.Load(nets, batches);
  if (ok) ok = measured.MeasureAlone();
  if (ok) ok = measured.MeasurePairs();
  if (ok) ok = measured.MeasureFours();
  if (ok) ok = measured.Judge(*peaks);
  return ok;
}

}  // namespace tactus
