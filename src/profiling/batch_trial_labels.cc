// Answers that may be labels: a dependence on other rows shows in few of them, so many are drawn.
#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <vector>

#include "profiling/batch_trial.h"
#include "profiling/deciding_graph.h"

namespace tactus {
namespace {

using Noise = SampleDraw::Noise;
constexpr std::array<Noise, 3> kNoise{Noise::kNormal, Noise::kNormal, Noise::kFraction};
constexpr std::size_t kRoundsBefore = 5;       // whose rows are not drawn again
constexpr std::size_t kLabelRounds = 2000;     // of a model whose answers may be labels
constexpr std::size_t kManyLabelRounds = 100;  // fewer are worth a word
// Of rows whose label is another alone, in another place or among fewer, rounding explains some:
// one in a million, on devices and with 16 bits more. Beyond this share, and so many, they depend.
constexpr double kMoved = 0.0015;
constexpr double kMovedOnDevice = 0.02;
constexpr std::size_t kLeastMoved = 4;

}  // namespace

// Labels hide what depends a little, but for rows that are near another label: a quantized
// classifier's answer is another for one row in a thousand. So many rows are drawn.
bool Trial::TryLabels() {
  bool labels = MayDecide(spec_);
  for (const auto& outputs : outputs_) {
    for (std::size_t t = 0; t < outputs.size(); ++t) {
      labels = labels || MayBeLabels(outputs[t], spec_.outputs[t].type);
    }
  }
  if (!labels) return true;
  const std::size_t n = std::min<std::size_t>(static_cast<std::size_t>(spec_.max_batch), 4);
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::size_t> beside = order;  // another neighbour
  beside.back() = n;
  std::vector<std::size_t> turned = order;
  std::ranges::rotate(turned, turned.begin() + 1);
  const std::vector<std::size_t> fewer(order.begin(), order.end() - (n > 2 ? 1 : 0));
  std::array<Moved, 3> moved;  // for each kind: a number of rows says nothing of places
  bool large = true;           // whole numbers, if the graph takes them
  rows_.clear();
  for (std::size_t round = 0; round < kLabelRounds; ++round) {
    if (TimeIsUp()) {
      if (round < kManyLabelRounds) labels_ = round;
      return true;
    }
    if (!DrawNear(round, n, large && round % 2 == 1)) return true;
    const auto before = RunTogether(order);
    if (!before) {
      large = false;
      rows_.clear();
      continue;
    }
    if (const auto now = RunTogether(beside)) {
      together_ = *now;
      // In the same place of as many rows, rounding is no reason.
      if (!Unmoved(order, *before, std::span(order).first(n - 1))) return false;
    }
    const std::array<std::size_t, 1> alone{round % n};
    CountMoved(order, *before, alone, moved[0]);
    if (round % 2 == 0) {
      CountMoved(order, *before, turned, moved[1]);
    } else {
      CountMoved(order, *before, fewer, moved[2]);
    }
    const double most = on_device_ ? kMovedOnDevice : kMoved;
    if (std::ranges::any_of(moved, [most](const Moved& kind) {
          return kind.rows >= kLeastMoved && kind.Share() > most;
        })) {
      return End(BatchTrial::End::kDiffers, "");
    }
    if (AllOfChance()) return true;
  }
  return true;
}

// Drawing takes longer than running where a graph is small: one row at a time is another.
bool Trial::DrawNear(std::size_t round, std::size_t neighbours, bool large) {
  const bool first = rows_.empty();
  for (std::size_t r = 0; r <= neighbours; ++r) {
    if (!first && r != round % (neighbours + 1)) continue;
    const bool other = r == neighbours;
    const bool last = r + 1 == neighbours;
    auto row = Make({.seed = 100 * (round + kRoundsBefore + 1) + r,
                     .scale = other  ? 0.1
                              : last ? 3.0
                                     : 1.0,
                     .integers = !large  ? 9
                                 : other ? 25
                                 : last  ? 255
                                         : 99,
                     .noise = kNoise[round % kNoise.size()]});
    if (!row) return false;
    if (first) {
      rows_.push_back(*std::move(row));
    } else {
      rows_[r] = *std::move(row);
    }
  }
  return true;
}

void Trial::CountMoved(std::span<const std::size_t> order, const Outputs& before,
                       std::span<const std::size_t> elsewhere, Moved& moved) {
  const auto now = RunTogether(elsewhere);
  if (!now) return;
  std::optional<Outputs> again;
  for (std::size_t e = 0; e < before.size(); ++e) {
    for (std::size_t t = 0; t < outputs_[e].size(); ++t) {
      OutputOfExit& output = outputs_[e][t];
      const DataType type = spec_.outputs[t].type;
      for (std::size_t i = 0; i < elsewhere.size() && !output.chance; ++i) {
        const auto row = before[e]->tensors[t].Row(elsewhere[i], order.size());
        const auto other = (*now)[e]->tensors[t].Row(i, elsewhere.size());
        const double size = NumbersOf(type, {row}).size;
        const RowDifference difference =
            Compare(type, row, other, size, on_device_ ? kDeviceSlack : 1);
        ++moved.compared;
        if (difference.none() || difference.few()) continue;
        if (!again) again = RunTogether(elsewhere);
        output.chance =
            again && !std::ranges::equal(other, (*again)[e]->tensors[t].Row(i, elsewhere.size()));
        if (output.chance) continue;
        ++moved.rows;
        largest_ = std::max(largest_, difference.largest);
      }
    }
  }
}

// Of floats a graph's file knows better (MayDecide); where there is none, they tell themselves.
bool Trial::MayBeLabels(const OutputOfExit& output, DataType type) const {
  if (!IsFloat(type)) return true;
  return spec_.exits.front().graph.empty() && (!output.fraction || output.alike);
}

}  // namespace tactus
