#include "core/chance_bound.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tactus {
namespace {

double Takes(const LaneWork& lane, const LaneWork::Turn& turn, int batch, const PlanInput& input) {
  const double slowdown = 1 + static_cast<double>(turn.slowdown) / LaneWork::kSlowdownSteps;
  return slowdown * ToSeconds(input.Latency(turn.model, batch, lane.lane_class));
}

// What waits at a model's turns.
class Waiting {
 public:
  // `came`: by what the turn takes, up to `batch`, how many come in the mean until the next turn.
  // `room`: who finds as many before it is late. `strict`: so are all of those turns at which more
  // wait than a batch, and who comes while these run.
  Waiting(const std::vector<double>& came, int room, bool strict)
      : batch_(static_cast<int>(came.size()) - 1),
        room_(room),
        strict_(strict),
        states_(room + batch_ + kBeyond) {
    for (const double mean : came) AddRow(mean);
    now_.assign(states_, 0);
    now_[0] = 1;
  }

  // Of those that come, the part that finds no room; in the long run.
  double Late() {
    constexpr int kMostTurns = 200;
    constexpr int kCheck = 8;  // turns
    constexpr double kSettled = 0.02;
    double before = 0;
    for (int turn = 1; turn <= kMostTurns; ++turn) {
      Step();
      if (turn % kCheck != 0) continue;
      const double late = LateNow();
      // It only grows, by less and less.
      if (late - before <= kSettled * late) return (1 + kSettled) * late;
      before = late;
    }
    return 1;
  }

 private:
  static constexpr int kBeyond = 8;  // states; the last stands for all above

  struct Row {
    double mean = 0;
    int most = 0;                  // that come, nearly always
    std::vector<double> part;      // Poisson, by number
    std::vector<double> too_many;  // by m: the mean of what exceeds m
  };

  static constexpr double kNothing = 1e-10;

  void AddRow(double mean) {
    Row& row = rows_.emplace_back();
    row.mean = mean;
    row.part.assign(states_, 0);
    row.too_many.assign(states_ + 1, 0);
    double part = std::exp(-mean);
    double exceeds = mean;  // E[N - 0]+
    double above = 1;       // P(N > m - 1)
    for (int m = 0; m < states_; ++m) {
      row.part[m] = part;
      row.too_many[m] = std::max(0.0, exceeds);
      if (part > kNothing) row.most = m;
      above -= part;
      exceeds -= above;
      part *= mean / (m + 1);
    }
  }
  const Row& RowOf(int waiting) const { return rows_[std::min(waiting, batch_)]; }

  void Step() {
    after_.assign(states_, 0);
    for (int q = 0; q < states_; ++q) {
      if (now_[q] < kNothing) continue;
      const Row& row = RowOf(q);
      const int left = std::max(0, q - batch_);
      const int most = std::min(row.most, states_ - 1 - left);
      for (int n = 0; n <= most; ++n) after_[left + n] += now_[q] * row.part[n];
    }
    double all = 0;
    for (const double part : after_) all += part;
    after_.back() += std::max(0.0, 1 - all);
    now_.swap(after_);
  }

  double LateNow() const {
    double came = 0;
    double late = 0;
    for (int q = 0; q < states_; ++q) {
      const Row& row = RowOf(q);
      const int left = std::max(0, q - batch_);
      came += now_[q] * row.mean;
      late += now_[q] *
              (strict_ && q > batch_ ? q + row.mean : row.too_many[std::max(0, room_ - left)]);
    }
    return late / came;
  }

  const int batch_;
  const int room_;
  const bool strict_;
  const int states_;
  std::vector<Row> rows_;  // by what the turn takes
  std::vector<double> now_;
  std::vector<double> after_;
};

}  // namespace

double MostViolationsByChance(const LaneWork& lane, std::size_t turn, const PlanInput& input) {
  constexpr int kMostRoom = 40;
  const LaneWork::Turn& own = lane.turns[turn];
  const PlannedModel& model = input.models[own.model.value()];
  const double slo = ToSeconds(model.slo);
  const double rate_rps = model.expected_rps * own.weight / LaneWork::kWeightSteps;
  double others = 0;
  for (std::size_t i = 0; i < lane.turns.size(); ++i) {
    if (i != turn) others += Takes(lane, lane.turns[i], lane.turns[i].batch, input);
  }
  int batch = own.batch;
  // Alone it grows; while all that waits fits into half of the SLO, nobody is left over.
  const int largest = lane.alone ? input.profile->max_batch(own.model) : batch;
  while (batch < largest && 2 * Takes(lane, own, batch + 1, input) <= slo) ++batch;
  std::vector<double> came;
  for (int b = 0; b <= batch; ++b) {
    // Where nothing waits and nobody else is there, the next to come is served at once.
    const bool skipped = b == 0 && !lane.alone;
    const double cycle = others + (skipped ? 0 : Takes(lane, own, std::max(1, b), input));
    came.push_back(std::max(came.empty() ? 0 : came.back(), rate_rps * cycle));
  }
  const double longest = came.back() / rate_rps;
  const double rounds = (slo - Takes(lane, own, batch, input)) / longest;
  if (rounds < 1 || came.back() >= batch) return 1;
  const int most = lane.alone ? 1 : std::max(1, kMostRoom / batch);
  const int room = batch * static_cast<int>(std::min<double>(rounds, most));
  return Waiting(came, room, lane.alone).Late();
}

}  // namespace tactus
