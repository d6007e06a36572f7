#include "planners/gpulet/rehearsal.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/number_text.h"
#include "base/rng.h"

namespace tactus {
namespace {

// So many requests of each model on a lane are waited for, and no more than so many of all.
constexpr std::int64_t kOfEach = 2'000;
constexpr std::int64_t kOfAll = 60'000;

// One model on one lane. Times in seconds from the beginning.
struct Part {
  double rate = 0;
  double slo = 0;
  int planned = 1;
  std::vector<double> takes;    // by batch - 1
  std::vector<double> waiting;  // deadlines, from `head` on
  std::size_t head = 0;
  double next = 0;  // arrival
  std::int64_t came = 0;
  std::int64_t lost = 0;

  int queued() const { return static_cast<int>(waiting.size() - head); }
  int most() const { return static_cast<int>(takes.size()); }
  bool Fits(double now, int at, int batch) const {
    return now + takes[batch - 1] <= waiting[head + at];
  }
  void GiveUp(int count) {
    lost += count;
    Take(count);
  }
  void Take(int count) {
    head += count;
    if (head < 1024) return;
    waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(head));
    head = 0;
  }
};

class LaneRehearsal {
 public:
  LaneRehearsal(std::vector<Part> parts, std::uint64_t seed)
      : parts_(std::move(parts)), rng_(Rng::Stream(seed, "rehearsal")) {
    for (Part& part : parts_) part.next = rng_.Exponential(part.rate);
  }

  const std::vector<Part>& Run() {
    std::size_t turn = 0;
    double now = 0;
    while (!Enough()) {
      Admit(now);
      const auto took = TakeTurn(now, turn);
      now = took > 0 ? now + took : NextArrival();
    }
    return parts_;
  }

 private:
  bool Enough() const {
    std::int64_t all = 0;
    bool each = true;
    for (const Part& part : parts_) {
      all += part.came;
      each = each && part.came >= kOfEach;
    }
    return each || all >= kOfAll;
  }

  void Admit(double now) {
    for (Part& part : parts_) {
      for (; part.next <= now; part.next += rng_.Exponential(part.rate)) {
        part.waiting.push_back(part.next + part.slo);
        ++part.came;
      }
      while (part.queued() > 0 && !part.Fits(now, 0, 1)) part.GiveUp(1);
    }
  }

  double NextArrival() const { return std::ranges::min_element(parts_, {}, &Part::next)->next; }

  // How long the next batch in turn takes; 0 where nothing waits.
  double TakeTurn(double now, std::size_t& turn) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const std::size_t at = (turn + i) % parts_.size();
      Part& part = parts_[at];
      part.GiveUp(Heads(part, now));
      int batch = std::min(part.queued(), parts_.size() == 1 ? part.most() : part.planned);
      while (batch > 0 && !part.Fits(now, 0, batch)) --batch;
      if (batch == 0) continue;
      part.Take(batch);
      turn = (at + 1) % parts_.size();
      return part.takes[batch - 1];
    }
    return 0;
  }

  // As policies/model_routes.h: WindowDrop, and MostServedFrom for a model that is alone.
  int Heads(const Part& part, double now) const {
    const int waiting = part.queued();
    if (waiting >= part.planned) {
      int head = 0;
      while (head <= waiting - part.planned && !part.Fits(now, head, part.planned)) ++head;
      return head <= waiting - part.planned ? head : 0;
    }
    if (parts_.size() > 1) return 0;
    int best = 0;
    int most = 0;
    for (int head = 0; head < waiting; ++head) {
      int batch = std::min(part.planned, waiting - head);
      while (batch > 0 && !part.Fits(now, head, batch)) --batch;
      if (batch - head <= most) continue;
      best = head;
      most = batch - head;
    }
    return best;
  }

  std::vector<Part> parts_;
  Rng rng_;
};

std::vector<double> Carried(const Plan& plan, const PlanInput& input) {
  std::vector<double> carried(input.models.size());
  for (const LanePlan& lane : plan.lanes) {
    for (const PlanEntry& entry : lane.entries) {
      carried[entry.model.value()] += entry.batch / ToSeconds(lane.cycle);
    }
  }
  return carried;
}

Part PartOf(const LanePlan& lane, const PlanEntry& entry, const PlanInput& input, double carried) {
  const PlannedModel& model = input.models[entry.model.value()];
  const auto latency = [&](int batch) {
    return ToSeconds(input.Latency(entry.model, batch, lane.spec.lane_class));
  };
  const double slower = std::max(1.0, ToSeconds(entry.length) / latency(entry.batch));
  Part part{.rate = model.rate_rps * entry.batch / ToSeconds(lane.cycle) / carried,
            .slo = ToSeconds(model.slo),
            .planned = entry.batch};
  for (int batch = 1; batch <= input.profile->max_batch(entry.model); ++batch) {
    part.takes.push_back(slower * latency(batch));
  }
  return part;
}

}  // namespace

Rehearsal Rehearse(const Plan& plan, const PlanInput& input) {
  const std::vector<double> carried = Carried(plan, input);
  std::vector<double> lost(input.models.size());  // requests a second
  for (std::size_t i = 0; i < plan.lanes.size(); ++i) {
    std::vector<Part> parts;
    std::vector<ModelId> models;
    for (const PlanEntry& entry : plan.lanes[i].entries) {
      Part part = PartOf(plan.lanes[i], entry, input, carried[entry.model.value()]);
      if (part.rate <= 0) continue;
      parts.push_back(std::move(part));
      models.push_back(entry.model);
    }
    if (parts.empty()) continue;
    LaneRehearsal lane(std::move(parts), i);
    const std::vector<Part>& done = lane.Run();
    for (std::size_t k = 0; k < done.size(); ++k) {
      const auto came = static_cast<double>(std::max<std::int64_t>(1, done[k].came));
      lost[models[k].value()] += done[k].rate * static_cast<double>(done[k].lost) / came;
    }
  }
  Rehearsal all;
  double rate = 0;
  for (std::size_t m = 0; m < lost.size(); ++m) {
    rate += input.models[m].rate_rps;
    all.lost += lost[m];
    const double part = lost[m] / std::max(input.models[m].rate_rps, 1e-9);
    if (part <= all.worst_lost) continue;
    all.worst_lost = part;
    all.worst = ModelId{static_cast<ModelId::rep>(m)};
  }
  if (rate > 0) all.lost /= rate;
  return all;
}

Expected<CarriedPlan> SolveCarried(const PlanInput& input, const Solver& solve,
                                   const CarriedOptions& options) {
  constexpr double kStep = 1.08;
  constexpr double kMost = 4;
  std::string lost;
  for (double more = 1 + options.headroom; more <= (1 + options.headroom) * kMost; more *= kStep) {
    PlanInput wanted = input;
    for (PlannedModel& model : wanted.models) model.rate_rps *= more;
    auto plan = solve(wanted);
    if (!plan) return Fail(plan.error().code, plan.error().message + lost);
    const Rehearsal rehearsal = Rehearse(*plan, input);
    if (rehearsal.lost <= options.most_lost) {
      return CarriedPlan{std::move(*plan), more - 1, rehearsal};
    }
    const auto percent = [](double part) {
      return NumberText(std::round(1000 * part) / 10) + " %";
    };
    lost = "; the plan for " + percent(more - 1) + " more than arrives would lose " +
           percent(rehearsal.lost) + " of the requests, which come in bunches";
  }
  return Fail(ErrorCode::kResourceExhausted, "not schedulable" + lost);
}

}  // namespace tactus
