#include "planners/lane_choice.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <queue>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "base/check.h"
#include "base/rng.h"

namespace tactus {
namespace {

constexpr double kWorthMoreThreads = 1.02;     // times the worth of fewer
constexpr double kMayBeLost = 0.01;            // of a model's requests
constexpr std::size_t kRequestsEach = 1500;    // requests of a model, on average
constexpr std::size_t kMostRequests = 30'000;  // of all models
constexpr int kHalvings = 8;

// Processors that lanes may have.
int ForLanes(int processors) { return processors > 2 ? processors - 1 : processors; }

// One model in the trial, whose batch of one meets its SLO; in seconds.
struct TriedWork {
  double slo = 0;
  double weight = 1;
  std::vector<double> latency;  // b rows at index b - 1
};

struct TrialRequest {
  double at = 0;  // at a rate of one a second
  std::size_t model = 0;
};

std::vector<TrialRequest> DrawRequests(const std::vector<TriedWork>& models) {
  Rng rng = Rng::Stream(1, "lane choice");
  double weights = 0;
  for (const TriedWork& model : models) weights += model.weight;
  std::vector<TrialRequest> requests(std::min(kMostRequests, kRequestsEach * models.size()));
  double at = 0;
  for (TrialRequest& request : requests) {
    at += -std::log(1 - rng.Uniform());
    double left = weights * rng.Uniform();
    std::size_t m = 0;
    while (m + 1 < models.size() && left >= models[m].weight) left -= models[m++].weight;
    request = {at, m};
  }
  return requests;
}

// The small model of the lanes, at one rate.
class LaneTrial {
 public:
  LaneTrial(const std::vector<TriedWork>& models, const std::vector<TrialRequest>& requests,
            int lanes, double rate)
      : models_(models),
        requests_(requests),
        rate_(rate),
        waiting_(models.size()),
        lost_(models.size()),
        may_lose_(models.size()),
        free_(std::greater<>{}, std::vector<double>(static_cast<std::size_t>(lanes), 0.0)) {
    for (const TrialRequest& request : requests) may_lose_[request.model] += kMayBeLost;
  }

  // Whether no model loses more than it may.
  bool Holds() {
    for (;;) {
      double now = free_.top();
      if (waiting_count_ == 0) {
        if (next_ == requests_.size()) return true;
        now = std::max(now, ArrivalOf(next_));
      }
      while (next_ < requests_.size() && ArrivalOf(next_) <= now) {
        waiting_[requests_[next_].model].push(ArrivalOf(next_));
        ++next_;
        ++waiting_count_;
      }
      if (!GiveUp(now)) return false;
      Launch(now);
    }
  }

 private:
  double ArrivalOf(std::size_t request) const { return requests_[request].at / rate_; }

  void Pop(std::size_t model) {
    waiting_[model].pop();
    --waiting_count_;
  }

  bool GiveUp(double now) {
    for (std::size_t m = 0; m < models_.size(); ++m) {
      const double earliest = now + models_[m].latency[0] - models_[m].slo;
      while (!waiting_[m].empty() && waiting_[m].front() < earliest) {
        Pop(m);
        if (++lost_[m] > may_lose_[m]) return false;
      }
    }
    return true;
  }

  void Launch(double now) {
    std::optional<std::size_t> chosen;
    double soonest = 0;
    for (std::size_t m = 0; m < models_.size(); ++m) {
      if (waiting_[m].empty()) continue;
      const double must_start = waiting_[m].front() + models_[m].slo - models_[m].latency[0];
      if (chosen && must_start >= soonest) continue;
      chosen = m;
      soonest = must_start;
    }
    if (!chosen) return;
    const TriedWork& model = models_[*chosen];
    const double deadline = waiting_[*chosen].front() + model.slo;
    const std::size_t most = std::min(model.latency.size(), waiting_[*chosen].size());
    std::size_t batch = 1;
    while (batch < most && now + model.latency[batch] <= deadline) ++batch;
    for (std::size_t i = 0; i < batch; ++i) Pop(*chosen);
    free_.pop();
    free_.push(now + model.latency[batch - 1]);
  }

  const std::vector<TriedWork>& models_;
  const std::vector<TrialRequest>& requests_;
  const double rate_;
  std::vector<std::queue<double>> waiting_;  // arrivals, by model
  std::vector<double> lost_;
  std::vector<double> may_lose_;
  std::priority_queue<double, std::vector<double>, std::greater<>> free_;  // when lanes are
  std::size_t waiting_count_ = 0;
  std::size_t next_ = 0;
};

// What the lanes do back to back with the largest batches: no rate above it holds.
double FullRate(const std::vector<TriedWork>& models, int lanes) {
  double seconds = 0;
  double weights = 0;
  for (const TriedWork& model : models) {
    double row = model.latency[0];
    for (std::size_t b = 1; b < model.latency.size() && model.latency[b] <= model.slo; ++b) {
      row = std::min(row, model.latency[b] / static_cast<double>(b + 1));
    }
    seconds += model.weight * row;
    weights += model.weight;
  }
  return seconds > 0 ? lanes * weights / seconds : 0;
}

struct LaneSplit {
  int lanes = 1;
  int threads = 1;
  LaneWorth worth;
};

// The numbers of threads that leave no core idle that one more would use, as far as every model is
// known at them that is known at all. Of 1 it is enough that nobody knows better.
std::vector<int> Candidates(const LaneQuestion& question, int most) {
  if (question.threads > 0) return {question.threads};
  std::set<int> all;
  for (const ModelDemand& demand : question.demands) {
    for (const auto& [threads, latency] : demand.by_threads) all.insert(threads);
  }
  std::erase_if(all, [&](int threads) {
    return threads > most || std::ranges::any_of(question.demands, [&](const ModelDemand& demand) {
             return !demand.by_threads.empty() && !demand.by_threads.contains(threads);
           });
  });
  std::vector<int> tried;
  for (auto it = all.begin(); it != all.end(); ++it) {
    const auto after = std::next(it);
    if (after != all.end() && most / *after == most / *it) continue;
    tried.push_back(*it);
  }
  return tried.empty() ? std::vector<int>{1} : tried;
}

bool WorthMore(const LaneWorth& more, const LaneWorth& than) {
  if (more.met != than.met) return more.met > than.met;
  return more.peak_rps > kWorthMoreThreads * than.peak_rps;
}

std::string CountOf(int n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string SplitText(const LaneSplit& split) {
  return fmt::format("{} of {}", CountOf(split.lanes, "lane"), CountOf(split.threads, "thread"));
}

std::string WorthText(const LaneWorth& worth, int known) {
  const bool few = worth.peak_rps < 100;
  std::string text = fmt::format("about {:.{}f} requests/s", worth.peak_rps, few ? 1 : 0);
  if (worth.met < known) text += fmt::format(" of {} of the {} models", worth.met, known);
  return text;
}

std::string Reason(const LaneQuestion& question, const std::vector<LaneSplit>& splits,
                   const LaneSplit& best) {
  if (question.threads > 0) return "the threads are given";
  const auto known = static_cast<int>(std::ranges::count_if(
      question.demands, [](const ModelDemand& demand) { return !demand.by_threads.empty(); }));
  if (known == 0) return "no profile says what more threads would bring";
  if (splits.size() == 1) return "the profile does not say what other threads would bring";
  std::string text = "by the profile they sustain " + WorthText(best.worth, known);
  const LaneSplit* second = nullptr;
  for (const LaneSplit& split : splits) {
    if (split.threads == best.threads) continue;
    if (second == nullptr || WorthMore(split.worth, second->worth)) second = &split;
  }
  return text + fmt::format(", and {} {}", SplitText(*second), WorthText(second->worth, known));
}

}  // namespace

LaneWorth WorthOf(const LaneQuestion& question, int lanes, int threads) {
  std::vector<TriedWork> models;
  for (const ModelDemand& demand : question.demands) {
    const auto known = demand.by_threads.find(threads);
    if (known == demand.by_threads.end() || known->second.empty()) continue;
    if (known->second[0] > demand.slo || demand.weight <= 0) continue;
    TriedWork& model = models.emplace_back(TriedWork{ToSeconds(demand.slo), demand.weight, {}});
    for (const Duration latency : known->second) model.latency.push_back(ToSeconds(latency));
  }
  LaneWorth worth{.met = static_cast<int>(models.size())};
  if (models.empty()) return worth;
  const std::vector<TrialRequest> requests = DrawRequests(models);
  const int at_once = lanes * question.slots;
  double fails = FullRate(models, at_once);
  for (int i = 0; i < kHalvings; ++i) {
    const double rate = (worth.peak_rps + fails) / 2;
    (LaneTrial(models, requests, at_once, rate).Holds() ? worth.peak_rps : fails) = rate;
  }
  return worth;
}

LaneChoice ChooseLanes(const LaneQuestion& question) {
  CHECK(question.processors > 0 && question.slots > 0, "there is something to run on");
  const int most = ForLanes(question.processors);
  std::vector<LaneSplit> splits;
  for (const int threads : Candidates(question, std::max(1, most / question.slots))) {
    const int lanes = std::max(1, most / (threads * question.slots));
    splits.push_back({lanes, threads, WorthOf(question, lanes, threads)});
  }
  const LaneSplit* best = &splits.front();
  for (const LaneSplit& split : splits) {
    if (WorthMore(split.worth, best->worth)) best = &split;
  }
  return {.lanes = best->lanes,
          .threads = best->threads,
          .kept = question.processors - most,
          .why = fmt::format(
              "{} on {}{}: {}", SplitText(*best), CountOf(question.processors, "processor"),
              most < question.processors ? ", one of which is left to other threads" : "",
              Reason(question, splits, *best))};
}

}  // namespace tactus
