// The closed loop of load_run.h.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "load/load_run.h"

namespace tactus {
namespace {

using std::chrono::steady_clock;

// Sends from within the answer, so that no thread has to be woken between two calls.
class Loop final : public AnswerSink {
 public:
  Loop(Transport& transport, int concurrency, std::uint32_t samples)
      : transport_(transport), samples_(samples), sent_(static_cast<std::size_t>(concurrency)) {}

  void Start() {
    running_ = true;
    in_flight_ = static_cast<int>(sent_.size());
    for (std::size_t i = 0; i < sent_.size(); ++i) Send(i);
  }
  void Count(bool on) { counting_ = on; }
  void Finish() {
    running_ = false;
    std::unique_lock lock(mutex_);
    idle_.wait_for(lock, std::chrono::seconds(10), [this] { return in_flight_ == 0; });
  }

  void OnAnswer(const Answer& answer) noexcept override {
    const auto sender = static_cast<std::size_t>(answer.token);
    const Duration latency = answer.received - sent_[sender];
    Record(answer, latency);
    // A server that fails at once must not turn this into a busy loop without end.
    if (running_ && failures_ < kMostFailures) {
      Send(sender);
      return;
    }
    const std::lock_guard lock(mutex_);
    if (--in_flight_ == 0) idle_.notify_all();
  }

  // After Stop of the transport.
  std::vector<Duration>& latencies() { return latencies_; }
  std::int64_t failures() const { return failures_; }
  const std::string& first_error() const { return first_error_; }

 private:
  static constexpr std::int64_t kMostFailures = 1000;

  void Send(std::size_t sender) {
    sent_[sender] = steady_clock::now();
    transport_.Send({sender, 0, next_sample_++ % samples_});
  }
  void Record(const Answer& answer, Duration latency) {
    const std::lock_guard lock(mutex_);
    if (answer.kind == Answered::kServed) {
      if (counting_) latencies_.push_back(latency);
      return;
    }
    ++failures_;
    if (first_error_.empty()) first_error_ = std::string(answer.error);
  }

  Transport& transport_;
  const std::uint32_t samples_;
  std::vector<SteadyTime> sent_;  // by sender; written by whoever sends for it
  std::atomic<std::uint32_t> next_sample_{0};
  std::atomic<bool> running_{false};
  std::atomic<bool> counting_{false};
  std::atomic<std::int64_t> failures_{0};
  std::mutex mutex_;
  std::condition_variable idle_;
  int in_flight_ = 0;
  std::vector<Duration> latencies_;
  std::string first_error_;
};

}  // namespace

Expected<ClosedLoopResult> RunClosedLoop(Transport& transport, const ClosedLoopOptions& options) {
  auto served = transport.Describe(options.model);
  if (!served) return std::unexpected(served.error());
  auto inputs = PrepareInputs(options.model, served->inputs, options.inputs, 1);
  if (!inputs) return std::unexpected(inputs.error());
  if (Status used = CheckUsed(options.inputs, {&*inputs, 1}); !used) {
    return std::unexpected(used.error());
  }
  Loop loop(transport, options.concurrency, inputs->samples);
  if (auto ready = transport.Prepare({&*inputs, 1}, loop); !ready) {
    return std::unexpected(ready.error());
  }
  loop.Start();
  std::this_thread::sleep_for(options.warmup);
  const SteadyTime begin = steady_clock::now();
  loop.Count(true);
  std::this_thread::sleep_for(options.duration);
  loop.Count(false);
  const double seconds = ToSeconds(steady_clock::now() - begin);
  loop.Finish();
  transport.Stop();

  ClosedLoopResult result;
  result.emulated = served->emulated;
  result.answered = static_cast<std::int64_t>(loop.latencies().size());
  result.failed = loop.failures();
  result.per_second = static_cast<double>(result.answered) / seconds;
  result.p50_us = ToMicros(Percentile(loop.latencies(), 50));
  result.p99_us = ToMicros(Percentile(loop.latencies(), 99));
  result.first_error = loop.first_error();
  return result;
}

}  // namespace tactus
