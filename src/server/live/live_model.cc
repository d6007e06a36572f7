#include "server/live/live_model.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tactus {
namespace {

constexpr double kBusy = 0.85;    // of their time: lanes have little left
constexpr double kSlower = 1.25;  // than the profile says
constexpr double kFine = 0.99;    // met
constexpr double kStalled = 2;    // than a batch was expected to take: it is not its model's fault

std::uint64_t Of(const OutcomeCounts& counts, Outcome outcome) {
  return counts[static_cast<std::size_t>(outcome)];
}

double Ms(Duration time) { return ToMillis(time); }

}  // namespace

void LiveLanes::Note(const std::string& model, Duration took, Duration expected) {
  LiveLanes one;
  if (expected > Duration{} && ToMillis(took) > kStalled * ToMillis(expected)) {
    one.stalled = took;
    one.stalled_expected = expected;
    one.stalled_of = model;
  } else {
    one.longest = took;
    one.longest_of = model;
  }
  Join(one);
}

void LiveLanes::Join(const LiveLanes& other) {
  deaths += other.deaths;
  if (other.longest > longest) {
    longest = other.longest;
    longest_of = other.longest_of;
  }
  if (other.stalled > stalled) {
    stalled = other.stalled;
    stalled_expected = other.stalled_expected;
    stalled_of = other.stalled_of;
  }
}

void LiveModel::Note(const LiveMoments::Answer& answer) {
  const Outcome outcome = answer.record.outcome;
  const bool answered = outcome == Outcome::kMet || outcome == Outcome::kLate;
  if (!answered) return;
  ++now_.answers;
  const std::size_t exit = answer.record.exit;
  if (exit >= now_.exits.size()) now_.exits.resize(exit + 1);
  ++now_.exits[exit];
  if (now_.latencies.size() < kMostLatencies) {
    now_.latencies.push_back(answer.latency());
  } else if (const std::uint64_t at = rng_.Below(now_.answers); at < kMostLatencies) {
    now_.latencies[at] = answer.latency();  // each has the same chance to stay
  }
}

void LiveModel::Note(const LiveMoments::Batch& batch) {
  ++now_.batches;
  now_.rows += batch.rows;
  now_.took_s += ToSeconds(batch.ended - batch.started);
  now_.predicted_s += ToSeconds(batch.predicted);
}

void LiveModel::Second(const OutcomeCounts& total, const OutcomeCounts& steps) {
  if (begun_) {
    for (std::size_t i = 0; i < total.size(); ++i) {
      now_.ended[i] = total[i] - total_[i];
      now_.steps[i] = steps[i] - total_steps_[i];
    }
  }
  begun_ = true;
  total_ = total;
  total_steps_ = steps;
  pieces_.push_back(std::exchange(now_, {}));
  if (pieces_.size() > kSeconds) pieces_.pop_front();
}

LiveModel::Window LiveModel::Last() const {
  Window window{.seconds = static_cast<double>(pieces_.size())};
  Piece sum;
  std::vector<Duration> values;
  for (const Piece& piece : pieces_) {
    for (std::size_t i = 0; i < window.ended.size(); ++i) {
      window.ended[i] += piece.ended[i];
      window.steps[i] += piece.steps[i];
    }
    window.exits.resize(std::max(window.exits.size(), piece.exits.size()));
    for (std::size_t i = 0; i < piece.exits.size(); ++i) window.exits[i] += piece.exits[i];
    sum.took_s += piece.took_s;
    sum.predicted_s += piece.predicted_s;
    sum.batches += piece.batches;
    sum.rows += piece.rows;
    values.insert(values.end(), piece.latencies.begin(), piece.latencies.end());
  }
  if (sum.batches > 0)
    window.rows = static_cast<double>(sum.rows) / static_cast<double>(sum.batches);
  if (sum.predicted_s > 0) window.slower = sum.took_s / sum.predicted_s;
  window.p50 = Percentile(values, 50);
  window.p99 = Percentile(values, 99);
  return window;
}

// The longest batch of all seconds, and how busy lanes were when calls missed.
LiveLanes LiveModel::WhenMissed(const std::deque<LiveLanes>& lanes) const {
  LiveLanes window;
  double missed = 0;
  const std::size_t seconds = std::min(lanes.size(), pieces_.size());
  for (std::size_t i = 1; i <= seconds; ++i) {
    const LiveLanes& second = lanes[lanes.size() - i];
    const OutcomeCounts& ended = pieces_[pieces_.size() - i].ended;
    const auto count = static_cast<double>(Of(ended, Outcome::kLate) + Of(ended, Outcome::kShed) +
                                           Of(ended, Outcome::kExpired));
    window.busy += count * second.busy;
    missed += count;
    window.Join(second);
  }
  window.busy /= std::max(missed, 1.0);
  return window;
}

std::string LiveModel::WhyMissed(const std::deque<LiveLanes>& seconds) const {
  const Window window = Last();
  const std::uint64_t met = Of(window.ended, Outcome::kMet);
  const std::uint64_t late = Of(window.ended, Outcome::kLate);
  const std::uint64_t given_up =
      Of(window.ended, Outcome::kShed) + Of(window.ended, Outcome::kExpired);
  const std::uint64_t failed = Of(window.ended, Outcome::kError);
  const double all = static_cast<double>(met + late + given_up + failed);
  if (static_cast<double>(met) >= kFine * all) return "";
  if (failed > late + given_up) {
    return fmt::format("its engine failed {} calls: the log says why", failed);
  }
  const std::string missed = fmt::format("{} late, {} given up", late, given_up);
  const LiveLanes lanes = WhenMissed(seconds);
  if (lanes.deaths > 0) {
    return fmt::format(
        "{}: a lane died {} in the last seconds, and calls waited for it to be back; the log says "
        "why",
        missed, lanes.deaths == 1 ? "once" : fmt::format("{} times", lanes.deaths));
  }
  if (window.slower >= kSlower) {
    return fmt::format(
        "{}: its batches take {:.1f} times what its profile says; something else uses the "
        "machine, or the profile is of another one",
        missed, window.slower);
  }
  if (lanes.busy >= kBusy) {
    return fmt::format(
        "{}: lanes are {:.0f} % busy; {:.0f} calls/s came, {:.0f} were answered in time. More "
        "lanes, fewer calls or a longer SLO",
        missed, 100 * lanes.busy, all / window.seconds, static_cast<double>(met) / window.seconds);
  }
  if (slo_ > Duration{} && lanes.longest > slo_ / 2) {
    return fmt::format("{}: batches of up to {:.3g} ms ({}) hold a lane, and its SLO is {:.3g} ms",
                       missed, Ms(lanes.longest), lanes.longest_of, Ms(slo_));
  }
  if (slo_ > Duration{} && lanes.stalled > slo_ / 2) {
    return fmt::format(
        "{}: a batch of {} took {:.3g} ms where {:.3g} were expected: the machine stalled, or the "
        "profile is wrong",
        missed, lanes.stalled_of, Ms(lanes.stalled), Ms(lanes.stalled_expected));
  }
  return fmt::format(
      "{}: lanes are {:.0f} % busy, so calls come in bursts, or brought less time than a batch "
      "takes",
      missed, 100 * lanes.busy);
}

}  // namespace tactus
