#include "workload/arrivals.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "base/whole_file.h"
#include "workload/csv.h"
#include "workload/rate_schedule.h"

namespace tactus {
namespace {

// A gap is never 0: two requests of one model do not arrive in the same nanosecond. Nor is it so
// long that adding it could overflow.
Duration Gap(double seconds) {
  constexpr double kLongest = 1e9;
  return std::max(FromSeconds(std::min(seconds, kLongest)), Nanos(1));
}

class PoissonArrivals final : public Arrivals {
 public:
  PoissonArrivals(Rng rng, double rate, TimePoint end) : rng_(rng), rate_(rate), end_(end) {}
  TimePoint Next() override {
    if (at_ < end_) at_ += Gap(rng_.Exponential(rate_));
    return at_ < end_ ? at_ : kNever;
  }

 private:
  Rng rng_;
  double rate_;
  TimePoint end_;
  TimePoint at_ = kStart;
};

// Gaps from a Gamma distribution with mean 1 / rate and the given coefficient of variation: 1 is
// Poisson, more is burstier, less is more regular.
class GammaArrivals final : public Arrivals {
 public:
  GammaArrivals(Rng rng, double rate, double cv, TimePoint end)
      : rng_(rng), shape_(1 / (cv * cv)), scale_(cv * cv / rate), end_(end) {}
  TimePoint Next() override {
    if (at_ < end_) at_ += Gap(rng_.Gamma(shape_, scale_));
    return at_ < end_ ? at_ : kNever;
  }

 private:
  Rng rng_;
  double shape_;
  double scale_;
  TimePoint end_;
  TimePoint at_ = kStart;
};

// Evenly spaced, from a random phase, so that the models do not all arrive together.
class UniformArrivals final : public Arrivals {
 public:
  UniformArrivals(Rng rng, double rate, TimePoint end)
      : gap_(1 / rate), phase_(rng.Uniform()), end_(end) {}
  TimePoint Next() override {
    // From the count, not by adding gaps: rounding must not shift the rate.
    const double at = (phase_ + static_cast<double>(count_)) * gap_;
    if (at >= ToSeconds(end_ - kStart)) return kNever;
    ++count_;
    const TimePoint next = kStart + FromSeconds(at);
    return next < end_ ? next : kNever;
  }

 private:
  double gap_;
  double phase_;
  TimePoint end_;
  std::int64_t count_ = 0;
};

// Instants of a trace, in turns of its length, stretched so that its mean rate is the wanted one.
struct Trace {
  std::vector<double> at;  // seconds from its start, rising
  double length = 0;       // of one turn, the gap to the next turn included
};

// Every model reads the same trace and the same dice, and keeps the instants that fall to it:
// bursts of the trace hit all models at once, as they do in life.
class TraceArrivals final : public Arrivals {
 public:
  TraceArrivals(std::shared_ptr<const Trace> trace, Rng dice, double stretch, double from,
                double to, TimePoint end)
      : trace_(std::move(trace)), dice_(dice), stretch_(stretch), from_(from), to_(to), end_(end) {}

  TimePoint Next() override {
    for (;;) {
      const double offset = trace_->length * static_cast<double>(turn_);
      const double at = (offset + trace_->at[index_]) * stretch_;
      if (at >= ToSeconds(end_ - kStart)) return kNever;
      if (++index_ == trace_->at.size()) {
        index_ = 0;
        ++turn_;
      }
      const double die = dice_.Uniform();
      if (die < from_ || die >= to_) continue;
      const TimePoint next = kStart + FromSeconds(at);
      return next < end_ ? next : kNever;
    }
  }

 private:
  std::shared_ptr<const Trace> trace_;
  Rng dice_;
  double stretch_;
  double from_;  // this model's part of [0, 1)
  double to_;
  TimePoint end_;
  std::size_t index_ = 0;
  std::int64_t turn_ = 0;
};

Expected<std::shared_ptr<const Trace>> LoadTrace(const std::filesystem::path& path) {
  auto whole = ReadWhole(path, "trace");
  if (!whole) return std::unexpected(std::move(whole.error()));
  std::istringstream in(*std::move(whole));
  auto trace = std::make_shared<Trace>();
  std::string line;
  bool header_allowed = true;
  for (int number = 1; std::getline(in, line); ++number) {
    const std::string_view text = Trim(line);
    if (text.empty() || text.front() == '#') continue;
    const auto at = ParseNumber(text.substr(0, text.find(',')));
    if (!at && header_allowed) {
      header_allowed = false;
      continue;
    }
    header_allowed = false;
    const bool rising = at && (trace->at.empty() || *at >= trace->at.back());
    if (!rising || *at < 0 || *at > 1e9) {
      return InvalidArgument(
          fmt::format("{}:{}: must be an instant in seconds, not before the one "
                      "above it",
                      path.string(), number));
    }
    trace->at.push_back(*at);
  }
  if (trace->at.size() < 2 || trace->at.back() <= trace->at.front()) {
    return InvalidArgument(
        fmt::format("{}: a trace needs at least two different instants", path.string()));
  }
  const double first = trace->at.front();
  for (double& at : trace->at) at -= first;
  const auto gaps = static_cast<double>(trace->at.size() - 1);
  trace->length = trace->at.back() * (1 + 1 / gaps);  // one mean gap between two turns
  return std::shared_ptr<const Trace>(std::move(trace));
}

Expected<std::vector<std::unique_ptr<Arrivals>>> MakeTraceArrivals(const Scenario& scenario,
                                                                   std::span<const double> rates,
                                                                   TimePoint end) {
  const auto trace = LoadTrace(scenario.trace);
  if (!trace) return std::unexpected(trace.error());
  double total = 0;
  for (double rate : rates) total += rate;
  if (total <= 0) return InvalidArgument("nothing would arrive: every model's rate is 0");
  const double stretch = static_cast<double>((*trace)->at.size()) / (*trace)->length / total;
  std::vector<std::unique_ptr<Arrivals>> streams;
  double from = 0;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const double to = i + 1 == rates.size() ? 1 : from + rates[i] / total;
    streams.push_back(std::make_unique<TraceArrivals>(
        *trace, Rng::Stream(scenario.seed, "arrivals/trace"), stretch, from, to, end));
    from = to;
  }
  return streams;
}

// The first calls of callers that wait for their answers, each at an instant of its own.
class FirstCalls final : public Arrivals {
 public:
  FirstCalls(Rng rng, const Scenario& scenario, TimePoint end) : end_(end) {
    const double within = (scenario.think_ms + 1) * 1e-3;  // s
    for (int i = 0; i < scenario.callers; ++i) at_.push_back(rng.Uniform() * within);
    std::ranges::sort(at_);
  }
  TimePoint Next() override {
    if (next_ == at_.size()) return kNever;
    const TimePoint next = kStart + FromSeconds(at_[next_++]);
    return next < end_ ? next : kNever;
  }

 private:
  std::vector<double> at_;  // seconds from the start, rising
  std::size_t next_ = 0;
  TimePoint end_;
};

class NoArrivals final : public Arrivals {
 public:
  TimePoint Next() override { return kNever; }
};

// At the scenario's rates, as they are without a schedule.
Expected<std::vector<std::unique_ptr<Arrivals>>> MakeSteadyArrivals(const Scenario& scenario,
                                                                    TimePoint end) {
  const std::vector<double> rates = ArrivalRates(scenario);
  if (scenario.process == ArrivalProcess::kTrace) return MakeTraceArrivals(scenario, rates, end);
  std::vector<std::unique_ptr<Arrivals>> streams;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const Rng rng = Rng::Stream(scenario.seed, "arrivals/" + ArrivalName(scenario, i));
    if (rates[i] <= 0) {
      streams.push_back(std::make_unique<NoArrivals>());
    } else if (scenario.process == ArrivalProcess::kClosed) {
      streams.push_back(std::make_unique<FirstCalls>(rng, scenario, end));
    } else if (scenario.process == ArrivalProcess::kGamma) {
      streams.push_back(std::make_unique<GammaArrivals>(rng, rates[i], scenario.cv, end));
    } else if (scenario.process == ArrivalProcess::kUniform) {
      streams.push_back(std::make_unique<UniformArrivals>(rng, rates[i], end));
    } else {
      streams.push_back(std::make_unique<PoissonArrivals>(rng, rates[i], end));
    }
  }
  return streams;
}

}  // namespace

Status CheckOpenLoop(const Scenario& scenario) {
  if (scenario.process != ArrivalProcess::kClosed) return {};
  return InvalidArgument(
      "[arrivals] process = \"closed\" is simulated only; against a server, "
      "`tactus load --concurrency` has callers that wait for their answers");
}

Expected<std::vector<std::unique_ptr<Arrivals>>> MakeArrivals(const Scenario& scenario,
                                                              TimePoint end) {
  if (scenario.schedule.empty()) return MakeSteadyArrivals(scenario, end);
  std::vector<std::string> names;
  const std::size_t sources = scenario.models.size() + scenario.pipelines.size();
  for (std::size_t i = 0; i < sources; ++i) names.push_back(ArrivalName(scenario, i));
  auto schedules = LoadRateSchedule(scenario.schedule, names);
  if (!schedules) return std::unexpected(schedules.error());
  auto streams = MakeSteadyArrivals(scenario, kNever);
  if (!streams) return streams;
  for (std::size_t i = 0; i < streams->size(); ++i) {
    (*streams)[i] = Follow(std::move((*schedules)[i]), std::move((*streams)[i]), end);
  }
  return streams;
}

}  // namespace tactus
