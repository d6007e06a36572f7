// The closed loop of load_run.h.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <ranges>
#include <thread>

#include <fmt/format.h>

#include "base/deadline_timer.h"
#include "load/load_run.h"
#include "platform/wall_clock.h"

namespace tactus {
namespace {

using std::chrono::steady_clock;

// After an error that is no refusal: a server that fails at once must not turn this into a busy
// loop.
constexpr Duration kAfterError = Millis(10);

// What the calls to one model came to, in the counted time.
struct Counts {
  Duration slo{};  // 0: the server states none
  std::vector<Duration> latencies;
  std::int64_t in_time = 0, refused = 0, expired = 0, failed = 0;
};

// Sends from within the answer, so that no thread has to be woken between two calls; a call that
// follows a refusal leaves by the timer.
class Loop final : public AnswerSink {
 public:
  // `callers`: the model of each.
  Loop(Transport& transport, std::vector<std::uint32_t> callers,
       std::span<const PreparedInputs> inputs, std::span<const Duration> slos, Duration retry_after)
      : transport_(transport), retry_after_(retry_after) {
    for (const std::uint32_t model : callers) callers_.push_back({.model = model, .sent = {}});
    for (std::size_t m = 0; m < inputs.size(); ++m) {
      samples_.push_back(inputs[m].samples);
      counts_.push_back({.slo = slos[m], .latencies = {}});
    }
  }

  void Start() {
    running_ = true;
    timer_.Start([this] { return clock_.Now(); });
    for (std::size_t i = 0; i < callers_.size(); ++i) Begin(i);
  }
  void Count(bool on) { counting_ = on; }
  // Waits for what is under way; how many calls had no answer.
  int Finish(std::chrono::milliseconds drain) {
    std::unique_lock lock(mutex_);
    running_ = false;
    idle_.wait_for(lock, drain, [this] { return in_flight_ == 0; });
    return in_flight_;
  }
  void StopTimer() { timer_.Stop(); }

  void OnAnswer(const Answer& answer) noexcept override {
    const auto caller = static_cast<std::size_t>(answer.token);
    Record(callers_[caller].model, answer, answer.received - callers_[caller].sent);
    Duration pause{};
    if (answer.kind == Answered::kShed || answer.kind == Answered::kExpired) pause = retry_after_;
    if (answer.kind > Answered::kExpired) pause = std::max(retry_after_, kAfterError);
    if (running_ && pause == Duration{}) return Send(caller);
    if (running_) timer_.At(clock_.Now() + pause, [this, caller] { Begin(caller); });
    const std::lock_guard lock(mutex_);
    if (--in_flight_ == 0) idle_.notify_all();
  }

  // After Stop of the transport.
  std::vector<Counts>& counts() { return counts_; }
  const std::string& first_error() const { return first_error_; }

 private:
  struct Caller {
    std::uint32_t model = 0;
    SteadyTime sent;  // written by whoever sends for it
  };

  void Begin(std::size_t caller) {
    {
      const std::lock_guard lock(mutex_);
      if (!running_) return;
      ++in_flight_;
    }
    Send(caller);
  }
  void Send(std::size_t caller) {
    Caller& sender = callers_[caller];
    sender.sent = steady_clock::now();
    transport_.Send({caller, sender.model, next_sample_++ % samples_[sender.model]});
  }
  void Record(std::uint32_t model, const Answer& answer, Duration latency) {
    const std::lock_guard lock(mutex_);
    if (answer.kind != Answered::kServed && first_error_.empty()) {
      first_error_ = std::string(answer.error);
    }
    if (!counting_) return;
    Counts& of = counts_[model];
    switch (answer.kind) {
      case Answered::kServed:
        of.latencies.push_back(latency);
        of.in_time += of.slo <= Duration{} || latency <= of.slo ? 1 : 0;
        break;
      case Answered::kShed:
        ++of.refused;
        break;
      case Answered::kExpired:
        ++of.expired;
        break;
      default:
        ++of.failed;
    }
  }

  Transport& transport_;
  const Duration retry_after_;
  const WallClock clock_;
  std::vector<Caller> callers_;
  std::vector<std::uint32_t> samples_;  // by model
  DeadlineTimer timer_;
  std::atomic<std::uint32_t> next_sample_{0};
  std::atomic<bool> running_{false};
  std::atomic<bool> counting_{false};
  std::mutex mutex_;
  std::condition_variable idle_;
  int in_flight_ = 0;           // callers that have a call under way
  std::vector<Counts> counts_;  // by model
  std::string first_error_;
};

// The model of each of `concurrency` callers: each model has one at least, and else its share.
std::vector<std::uint32_t> CallersOf(const std::vector<ClosedLoopModel>& models, int concurrency) {
  double whole = 0;
  for (const ClosedLoopModel& each : models) whole += each.weight;
  std::vector<std::uint32_t> callers(models.size());
  std::iota(callers.begin(), callers.end(), 0);
  std::vector<double> has(models.size(), 1);
  while (static_cast<int>(callers.size()) < concurrency) {
    const auto lacks = [&](std::uint32_t m) {
      return concurrency * models[m].weight / whole - has[m];
    };
    const auto every = std::views::iota(0U, static_cast<std::uint32_t>(models.size()));
    const std::uint32_t next = *std::ranges::max_element(every, {}, lacks);
    ++has[next];
    callers.push_back(next);
  }
  return callers;
}

ClosedLoopResult::OfModel OfModel(const std::string& name, Counts& counts, double seconds) {
  ClosedLoopResult::OfModel of{.name = name,
                               .answered = static_cast<std::int64_t>(counts.latencies.size()),
                               .in_time = counts.in_time,
                               .refused = counts.refused,
                               .expired = counts.expired,
                               .failed = counts.failed};
  of.per_second = static_cast<double>(of.answered) / seconds;
  of.in_time_per_second = static_cast<double>(of.in_time) / seconds;
  of.p50_us = ToMicros(Percentile(counts.latencies, 50));
  of.p99_us = ToMicros(Percentile(counts.latencies, 99));
  return of;
}

}  // namespace

std::int64_t ClosedLoopResult::failed() const {
  std::int64_t all = 0;
  for (const OfModel& of : models) all += of.failed;
  return all;
}

Expected<ClosedLoopResult> RunClosedLoop(Transport& transport, const ClosedLoopOptions& options) {
  if (options.concurrency < static_cast<int>(options.models.size())) {
    return InvalidArgument(
        fmt::format("{} callers are too few for {} models: each needs one at least",
                    options.concurrency, options.models.size()));
  }
  ClosedLoopResult result;
  std::vector<PreparedInputs> inputs;
  std::vector<Duration> slos;
  for (const ClosedLoopModel& model : options.models) {
    auto served = transport.Describe(model.name);
    if (!served) return std::unexpected(served.error());
    result.emulated = result.emulated || served->emulated;
    slos.push_back(served->model.slo);
    InputChoice choice = options.inputs;
    choice.sizes = served->sizes;
    auto prepared = PrepareInputs(model.name, served->inputs, choice, 1);
    if (!prepared) return std::unexpected(prepared.error());
    inputs.push_back(*std::move(prepared));
  }
  if (Status used = CheckUsed(options.inputs, inputs); !used) return std::unexpected(used.error());
  Loop loop(transport, CallersOf(options.models, options.concurrency), inputs, slos,
            options.retry_after);
  if (auto ready = transport.Prepare(inputs, loop); !ready) return std::unexpected(ready.error());
  loop.Start();
  std::this_thread::sleep_for(options.warmup);
  const SteadyTime begin = steady_clock::now();
  loop.Count(true);
  std::this_thread::sleep_for(options.duration);
  loop.Count(false);
  const double seconds = ToSeconds(steady_clock::now() - begin);
  result.unanswered = loop.Finish(options.drain);
  transport.Stop();
  loop.StopTimer();

  for (std::size_t m = 0; m < options.models.size(); ++m) {
    result.models.push_back(OfModel(options.models[m].name, loop.counts()[m], seconds));
  }
  result.first_error = loop.first_error();
  return result;
}

}  // namespace tactus
