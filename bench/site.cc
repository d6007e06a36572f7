// How many requests a second a central scheduler takes over sockets: offers of two front ends in,
// at most so many under way, grants out, batches reported at once by a worker that runs nothing.
// All of it, the peers too, in one process on the cores that there are.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cluster/site/scheduler_link.h"
#include "cluster/site/scheduler_server.h"
#include "policies/registry.h"
#include "program.h"

namespace tactus {
namespace {

TimePoint Now() { return TimePoint{std::chrono::steady_clock::now().time_since_epoch()}; }

constexpr int kBatch = 64;
constexpr int kModels = 8;

WorkerIntroduction Worker(int lanes) {
  WorkerIntroduction worker{.name = "w", .address = "127.0.0.1:1", .lanes = lanes, .models = {}};
  for (int m = 0; m < kModels; ++m) {
    WorkerModel model;
    model.spec.name = fmt::format("m{}", m);
    model.spec.max_batch = kBatch;
    model.spec.slo = Seconds(10);
    model.spec.exits = {{"1", {}, 0}};
    model.model = {
        .name = model.spec.name, .slo = Seconds(10), .max_batch = kBatch, .exits = {{"1", 0}}};
    model.rows = {.exits = 1, .max_batch = kBatch, .latency = std::vector(kBatch, Micros(1))};
    worker.models.push_back(std::move(model));
  }
  return worker;
}

// One front end: offers as fast as grants make room.
class Offering {
 public:
  Offering(std::string scheduler, int window, SchedulerLink& worker)
      : window_(window),
        worker_(worker),
        link_({.schedulers = {std::move(scheduler)},
               .hear = [this](std::uint32_t, ToPeer&& message) { Hear(message); },
               .gone = {},
               .say = {},
               .now = Now}) {
    link_.Start();
  }
  void Run(BenchClock::time_point end) {
    std::uint64_t next = 0;
    while (BenchClock::now() < end) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait_until(lock, end, [this] { return term_ != 0 && sent_ - done_ < window_; });
        if (term_ == 0 || sent_ - done_ >= window_) continue;
        sent_ += kBatch;
      }
      FromPeer message{.seen = term_};
      for (int i = 0; i < kBatch; ++i, ++next) {
        const ModelKey model = KeyOf(fmt::format("m{}", next / kBatch % kModels));
        message.offers.push_back({RequestId{next}, model, Now() + Seconds(10)});
      }
      link_.Send(0, message);
    }
  }
  std::uint64_t granted() const { return granted_.load(); }
  std::uint64_t sent() {
    const std::lock_guard lock(mutex_);
    return sent_;
  }
  void Stop() { link_.Stop(); }

 private:
  void Hear(const ToPeer& message) {
    FromPeer reports;
    std::uint64_t rows = message.refusals.size();
    for (const Grant& grant : message.grants) {
      rows += grant.requests.size();
      granted_ += grant.requests.size();
      reports.done.push_back({grant.key, Micros(1)});
    }
    {
      const std::lock_guard lock(mutex_);
      if (message.leads && !message.models.empty()) term_ = message.term;
      done_ += rows;
    }
    if (!reports.done.empty()) worker_.Send(0, reports);
    changed_.notify_one();
  }

  const std::uint64_t window_;
  SchedulerLink& worker_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Term term_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t done_ = 0;
  std::atomic<std::uint64_t> granted_{0};
  SchedulerLink link_;
};

int Run(const std::string& policy, double seconds, int window, const std::string& json) {
  SchedulerServer::Options options;
  options.policy = [&] { return *MakePolicy(policy); };
  options.takeover.first = Millis(1);
  SchedulerServer server(std::move(options));
  const auto port = server.Start();
  if (!port) return CannotRun("bench site", port.error());
  const std::string place = fmt::format("127.0.0.1:{}", *port);
  SchedulerLink* worker_link = nullptr;
  std::atomic<bool> joined{false};
  SchedulerLink worker({.schedulers = {place},
                        .hear =
                            [&](std::uint32_t, ToPeer&& message) {
                              if (!message.leads || joined.exchange(true)) return;
                              FromPeer join{.seen = message.term};
                              join.join = {Worker(64)};
                              worker_link->Send(0, join);
                            },
                        .gone = {},
                        .say = {},
                        .now = Now});
  worker_link = &worker;
  worker.Start();
  Offering first(place, window, worker);
  Offering second(place, window, worker);
  const auto begin = BenchClock::now();
  const auto end = begin + std::chrono::duration_cast<BenchClock::duration>(
                               std::chrono::duration<double>(seconds));
  std::thread other([&] { second.Run(end); });
  first.Run(end);
  other.join();
  const double took = NanosSince(begin) * 1e-9;
  const std::uint64_t granted = first.granted() + second.granted();
  const double rate = static_cast<double>(granted) / took;
  const std::uint64_t offered = first.sent() + second.sent();
  if (granted > offered) {
    return CannotRun("bench site", Error{ErrorCode::kInternal, "more was granted than offered"});
  }
  first.Stop();
  second.Stop();
  worker.Stop();
  server.Stop();
  fmt::print("{} requests offered, {} granted in {:.1f} s: {:.0f} a second, by {}\n", offered,
             granted, took, rate, policy);
  Report report;
  report.checks = {AtLeast("requests/s that one scheduler takes over sockets", rate, 150'000)};
  return Conclude("bench site", report, json);
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) {
  CLI::App app("Requests a second that a central scheduler takes over sockets.");
  std::string policy = "horizon";
  std::string json;
  double seconds = 5;
  int window = 4096;
  app.add_option("--policy", policy)->capture_default_str();
  app.add_option("--seconds", seconds)->capture_default_str();
  app.add_option("--window", window, "Requests under way, of each front end")
      ->capture_default_str();
  app.add_option("--json", json);
  CLI11_PARSE(app, argc, argv);
  return tactus::Run(policy, seconds, window, json);
}
