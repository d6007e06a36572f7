#include "load/load_run.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sys/prctl.h>

#include "base/rng.h"
#include "load/ledger.h"
#include "workload/arrivals.h"

namespace tactus {
namespace {

// Each is kept until the report.
constexpr double kMostLoadRequests = 1e8;

// A run of which nothing could be reported, or not everything kept.
Status CheckSize(const Scenario& scenario, double requests) {
  if (scenario.warmup_s >= scenario.duration_s) {
    return InvalidArgument(
        fmt::format("nothing would count: the warmup of {} s is no shorter than the duration of "
                    "{} s; lengthen --duration or shorten --warmup",
                    scenario.warmup_s, scenario.duration_s));
  }
  if (requests <= kMostLoadRequests) return {};
  return InvalidArgument(
      fmt::format("some {:g} requests are more than a run keeps ({:g}); lower --rate or --duration",
                  requests, kMostLoadRequests));
}

using std::chrono::steady_clock;

constexpr Duration kReportEvery = Millis(200);

// The models as asked for, as the server describes them.
struct Targets {
  std::vector<Model> models;
  std::vector<PreparedInputs> inputs;
  bool emulated = false;
};

Expected<Targets> Resolve(Transport& transport, const LoadOptions& options) {
  Targets targets;
  for (const ScenarioModel& wanted : options.scenario.models) {
    auto served = transport.Describe(wanted.name);
    if (!served) return std::unexpected(served.error());
    if (!options.slo_from_server) served->model.slo = FromMillis(wanted.slo_ms);
    InputChoice choice = options.inputs;
    choice.sizes = served->sizes;
    auto inputs = PrepareInputs(wanted.name, served->inputs, choice, options.scenario.seed);
    if (!inputs) return std::unexpected(inputs.error());
    targets.models.push_back(std::move(served->model));
    targets.inputs.push_back(std::move(*inputs));
    targets.emulated = targets.emulated || served->emulated;
  }
  if (Status used = CheckUsed(options.inputs, targets.inputs); !used) {
    return std::unexpected(used.error());
  }
  return targets;
}

// Sends each request at its instant and keeps the figures of the sending itself.
class Pacer {
 public:
  Pacer(Transport& transport, const LoadOptions& options, const OnProgress& progress,
        std::stop_token stop)
      : transport_(transport), options_(options), progress_(progress), stop_(std::move(stop)) {}

  Status Run(const Targets& targets, Ledger& ledger, SteadyTime zero);
  // Reports until everything is answered or the drain is over.
  void Drain(Ledger& ledger);

  std::vector<Duration>& lags() { return lags_; }
  TimePoint stopped_at() const { return stopped_at_; }

 private:
  TimePoint Now() const {
    return TimePoint{std::chrono::duration_cast<Duration>(steady_clock::now() - zero_)};
  }
  // Sleeps to `at`, reporting progress on the way. False when told to stop.
  bool SleepUntil(TimePoint at, const Ledger& ledger);
  void Report(const Ledger& ledger, TimePoint now, bool draining);

  Transport& transport_;
  const LoadOptions& options_;
  const OnProgress& progress_;
  const std::stop_token stop_;
  SteadyTime zero_;
  std::vector<Duration> lags_;
  TimePoint next_report_{kReportEvery};
  TimePoint last_report_{};
  std::int64_t last_sent_ = 0;
  TimePoint stopped_at_{};
};

void Pacer::Report(const Ledger& ledger, TimePoint now, bool draining) {
  if (!progress_) return;
  const LedgerCounts counts = ledger.counts();
  const double since = ToSeconds(now - last_report_);
  LoadProgress progress;
  progress.elapsed_s = ToSeconds(now.time_since_epoch());
  progress.total_s = options_.scenario.duration_s;
  progress.sent = counts.opened;
  progress.in_flight = counts.in_flight();
  progress.rate_rps = since > 0 ? static_cast<double>(counts.opened - last_sent_) / since : 0;
  progress.bad_ratio =
      counts.closed > 0 ? static_cast<double>(counts.bad) / static_cast<double>(counts.closed) : 0;
  progress.draining = draining;
  progress_(progress);
  last_report_ = now;
  last_sent_ = counts.opened;
}

bool Pacer::SleepUntil(TimePoint at, const Ledger& ledger) {
  for (;;) {
    if (stop_.stop_requested()) return false;
    const TimePoint now = Now();
    if (now >= next_report_) {
      Report(ledger, now, false);
      next_report_ = now + kReportEvery;
    }
    if (now >= at) return true;
    std::this_thread::sleep_until(zero_ + std::min(at, next_report_).time_since_epoch());
  }
}

Status Pacer::Run(const Targets& targets, Ledger& ledger, SteadyTime zero) {
  zero_ = zero;
  const TimePoint end = TimePoint{FromSeconds(options_.scenario.duration_s)};
  if (Status open = CheckOpenLoop(options_.scenario); !open) return open;
  auto arrivals = MakeArrivals(options_.scenario, end);
  if (!arrivals) return std::unexpected(arrivals.error());
  std::vector<TimePoint> next;
  std::vector<Rng> samples;
  for (std::size_t m = 0; m < arrivals->size(); ++m) {
    next.push_back((*arrivals)[m]->Next());
    samples.push_back(
        Rng::Stream(options_.scenario.seed, "samples/" + options_.scenario.models[m].name));
  }
  for (;;) {
    const auto first = std::ranges::min_element(next);
    if (first == next.end() || *first >= end) break;
    const TimePoint intended = *first;
    if (!SleepUntil(intended, ledger)) break;
    const auto model = static_cast<std::uint32_t>(first - next.begin());
    const auto sample =
        static_cast<std::uint32_t>(samples[model].Below(targets.inputs[model].samples));
    Duration allowed = targets.models[model].slo;
    if (options_.timeout.count() > 0 && (allowed.count() == 0 || options_.timeout < allowed)) {
      allowed = options_.timeout;
    }
    const TimePoint deadline = allowed.count() > 0 ? intended + allowed : kNever;
    const std::uint64_t token = ledger.Open(model, sample, intended, deadline);
    Call call{.token = token, .model = model, .sample = sample};
    if (deadline != kNever) {
      call.meant = zero_ + intended.time_since_epoch();
      call.due = zero_ + deadline.time_since_epoch();
    }
    transport_.Send(call);
    lags_.push_back(Now() - intended);
    next[model] = (*arrivals)[model]->Next();
  }
  SleepUntil(end, ledger);
  stopped_at_ = std::min(Now(), end);
  return {};
}

void Pacer::Drain(Ledger& ledger) {
  const SteadyTime until = steady_clock::now() + options_.drain;
  while (steady_clock::now() < until) {  // an end that was asked for ends the sending only
    if (ledger.WaitIdle(std::min<SteadyTime>(until, steady_clock::now() + kReportEvery))) break;
    Report(ledger, Now(), true);
  }
  ledger.CloseUnanswered(Now());
}

void DescribeRun(const Transport& transport, const LoadOptions& options, RunReport& report) {
  report.scenario = options.scenario.name;
  report.source = fmt::format("load {}", transport.name());
  report.seed = options.scenario.seed;
  report.commit = BuildCommit();
  report.machine = MachineKind();
}

}  // namespace

std::string ToText(const LoadProgress& p) {
  return fmt::format("{:.1f}/{:.1f} s  sent {}  in flight {}  {:.0f} req/s  violations {:.2f} %{}",
                     std::min(p.elapsed_s, p.total_s), p.total_s, p.sent, p.in_flight, p.rate_rps,
                     p.bad_ratio * 100, p.draining ? "  waiting for answers" : "");
}

Expected<LoadResult> RunLoad(Transport& transport, const LoadOptions& options,
                             const OnProgress& progress, std::stop_token stop) {
  auto targets = Resolve(transport, options);
  if (!targets) return std::unexpected(targets.error());
  const double expected = options.scenario.duration_s * options.scenario.rate_rps * 1.1;
  if (Status fit = CheckSize(options.scenario, expected); !fit) return std::unexpected(fit.error());
  Ledger ledger(targets->models, targets->inputs, static_cast<std::size_t>(expected) + 1000);
  if (auto ready = transport.Prepare(targets->inputs, ledger); !ready) {
    return std::unexpected(ready.error());
  }
  // Without it the kernel may wake us 50 us late, to save wake-ups.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  Pacer pacer(transport, options, progress, std::move(stop));
  const SteadyTime zero = steady_clock::now();
  ledger.Start(zero);
  if (auto sent = pacer.Run(*targets, ledger, zero); !sent) return std::unexpected(sent.error());
  pacer.Drain(ledger);
  const LedgerCounts counts = ledger.counts();
  // Only now: what a cancelled call still reports must not be taken for the server's answer.
  transport.Stop();

  LoadResult result;
  result.records.assign(ledger.records().begin(), ledger.records().end());
  // Answers come in any order; figures over time want the order of arrival.
  std::ranges::stable_sort(result.records, {}, &RequestRecord::arrival);
  result.report =
      Summarize(result.records, ledger.models(), TimePoint{FromSeconds(options.scenario.warmup_s)},
                pacer.stopped_at(), options.scenario.warmup_requests);
  DescribeRun(transport, options, result.report);
  result.emulated = targets->emulated;
  if (result.emulated) result.report.source += ", emulated";
  result.sent = counts.opened;
  result.unanswered = counts.unanswered;
  result.unexpected = counts.unexpected;
  result.unsent = transport.unsent();
  result.accuracy_measured = result.report.all.measured_accuracy.has_value();
  result.first_error = ledger.first_error();
  result.lag_p50_ms = ToMillis(Percentile(pacer.lags(), 50));
  result.lag_p99_ms = ToMillis(Percentile(pacer.lags(), 99));
  result.lag_max_ms = ToMillis(Percentile(pacer.lags(), 100));
  return result;
}

}  // namespace tactus
