#include "server/live/live_feed.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tactus {
namespace {

using Json = nlohmann::ordered_json;

// Names of models are what clients and folders say.
std::string TextOf(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// With so many in one: 10 for tenths.
double Rounded(double value, double per_one) { return std::round(value * per_one) / per_one; }
std::int64_t Tenths(Duration time) { return std::llround(10 * ToMillis(time)); }

struct Bar {
  LiveMoments::Batch batch;
  int count = 1;  // batches that it stands for
};

// By lane and start; where there are more than `most`, those of a lane that follow each other and
// are of one model are one.
std::vector<Bar> BarsOf(std::vector<LiveMoments::Batch> batches, std::size_t most) {
  std::ranges::sort(batches, {}, [](const auto& b) { return std::pair(b.lane, b.started); });
  const std::size_t each = batches.size() / most + 1;
  std::vector<Bar> bars;
  for (const LiveMoments::Batch& batch : batches) {
    if (!bars.empty()) {
      Bar& last = bars.back();
      const bool alike = last.batch.lane == batch.lane && last.batch.model == batch.model;
      if (alike && static_cast<std::size_t>(last.count) < each) {
        ++last.count;
        last.batch.ended = std::max(last.batch.ended, batch.ended);
        last.batch.rows += batch.rows;
        last.batch.predicted += batch.predicted;
        last.batch.late |= batch.late;
        last.batch.failed |= batch.failed;
        last.batch.waited = std::max(last.batch.waited, batch.waited);
        last.batch.late_by = std::max(last.batch.late_by, batch.late_by);
        continue;
      }
    }
    bars.push_back({batch});
  }
  return bars;
}

// Leaves those that ended last; the number of batches of the others.
int LeaveMost(std::vector<Bar>& bars, std::size_t most) {
  if (bars.size() <= most) return 0;
  std::ranges::sort(bars, std::greater(), [](const Bar& bar) { return bar.batch.ended; });
  int left_out = 0;
  for (std::size_t i = most; i < bars.size(); ++i) left_out += bars[i].count;
  bars.resize(most);
  std::ranges::sort(bars, {},
                    [](const Bar& b) { return std::pair(b.batch.lane, b.batch.started); });
  return left_out;
}

// LANE, MODEL, EXIT, ROWS, START, LENGTH, FLAGS, BATCHES, PREDICTED, WAITED, LATE BY of each, one
// behind the other.
// Times are tenths of a millisecond, starts from `from` on; flags: 1 late, 2 failed.
Json BarsJson(const std::vector<Bar>& bars, TimePoint from) {
  Json numbers = Json::array();
  for (const Bar& bar : bars) {
    const LiveMoments::Batch& b = bar.batch;
    for (const std::int64_t number :
         {std::int64_t{b.lane}, std::int64_t{b.model}, std::int64_t{b.exit}, std::int64_t{b.rows},
          Tenths(b.started - from), Tenths(b.ended - b.started),
          std::int64_t{b.late ? 1 : 0} + (b.failed ? 2 : 0), std::int64_t{bar.count},
          Tenths(b.predicted), Tenths(b.waited), Tenths(b.late_by)}) {
      numbers.push_back(number);
    }
  }
  return numbers;
}

void AddTo(OutcomeCounts& sum, const OutcomeCounts& counts) {
  for (std::size_t i = 0; i < counts.size(); ++i) sum[i] += counts[i];
}

bool WasGivenUp(const LiveMoments::Answer& answer) {
  return answer.record.outcome == Outcome::kShed || answer.record.outcome == Outcome::kExpired;
}

struct Drops {
  Json numbers = Json::array();   // MODEL, TIME, CALLS that were given up then
  Json unplaced = Json::array();  // MODEL, CALLS of which no time is told
};

// With at most so many times; the earliest are left out.
Drops DropsOf(const std::vector<LiveMoments::Answer>& answers, TimePoint from, std::size_t most) {
  std::map<std::pair<std::int64_t, std::uint32_t>, std::uint64_t> counts;
  for (const LiveMoments::Answer& each : answers) {
    if (WasGivenUp(each)) ++counts[{Tenths(each.record.ended - from), each.model}];
  }
  Drops drops;
  std::map<std::uint32_t, std::uint64_t> unplaced;
  std::size_t left = counts.size();
  for (const auto& [at, count] : counts) {
    const auto& [time, model] = at;
    if (left-- > most) {
      unplaced[model] += count;
      continue;
    }
    for (const std::uint64_t number : {std::uint64_t{model}, std::uint64_t(time), count}) {
      drops.numbers.push_back(number);
    }
  }
  for (const auto& [model, count] : unplaced) {
    drops.unplaced.push_back(model);
    drops.unplaced.push_back(count);
  }
  return drops;
}

}  // namespace

LiveFeed::LiveFeed(Parts parts) : parts_(std::move(parts)) {
  task_.Start(
      "live page", [this] { return Tick(); }, kSecond);
}

Expected<std::shared_ptr<FeedWatcher>> LiveFeed::Watch(std::string_view client) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return Fail(ErrorCode::kUnavailable, "the server is stopping");
  std::erase_if(watchers_, [](const Watching& each) { return each.watcher->left(); });
  const auto of_client = static_cast<std::size_t>(
      std::ranges::count(watchers_, client, [](const Watching& each) { return each.client; }));
  if (watchers_.size() >= kMostWatchers || of_client >= kMostOfClient) {
    return Fail(ErrorCode::kResourceExhausted,
                fmt::format("{} watch this page already, {} of them from {}; {} may, and {} of one "
                            "client: close one",
                            watchers_.size(), of_client, client, kMostWatchers, kMostOfClient));
  }
  watchers_.push_back({std::make_shared<FeedWatcher>(FeedKind::kEvents), std::string(client)});
  task_.Wake();
  return watchers_.back().watcher;
}

void LiveFeed::Stop() {
  std::vector<Watching> all;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    all = std::exchange(watchers_, {});
  }
  task_.Stop();
  for (const Watching& each : all) each.watcher->End();
}

Duration LiveFeed::Tick() {
  std::vector<std::shared_ptr<FeedWatcher>> fresh;
  std::vector<std::shared_ptr<FeedWatcher>> all;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(watchers_, [](const Watching& each) { return each.watcher->left(); });
    for (Watching& each : watchers_) {
      all.push_back(each.watcher);
      if (std::exchange(each.fresh, false)) fresh.push_back(each.watcher);
    }
  }
  const auto now = std::chrono::steady_clock::now();
  if (!Watched(!all.empty(), now)) {
    if (SecondIsOver()) Keep(parts_.read(), ReadEnded());
    return std::max(Duration(next_second_ - now), Duration{});
  }
  const bool whole_second = SecondIsOver();
  const LiveMoments::Taken taken = parts_.moments.Take();
  // Bars say their models by number: the names come first.
  const bool named = taken.models.size() > std::exchange(names_, taken.models).size();
  minute_.Add(taken, now);
  Count(taken);
  std::optional<RuntimeReading> reading;
  if (whole_second || named || !fresh.empty()) reading = parts_.read();
  if (reading) LearnModels(*reading);
  if (whole_second) {
    const EndedByName ended = ReadEnded();
    Keep(*reading, ended);
    Second(ended);
  }
  if (reading) {
    std::string state = StateText(*reading);
    Send("state", state, state == known_ ? fresh : all);
    known_ = std::move(state);
  }
  if (!fresh.empty()) Send("past", PastText(), fresh);
  Send("tick", TickText(taken, whole_second ? &*reading : nullptr), all);
  return kTick;
}

bool LiveFeed::Watched(bool anybody, std::chrono::steady_clock::time_point now) {
  if (anybody) {
    left_ = now;
    if (!std::exchange(watched_, true)) Begin();
  } else if (watched_ && now - left_ >= parts_.linger) {
    watched_ = false;
    parts_.moments.Watch(false);
  }
  if (!watched_) minute_.Forget(now);
  return watched_;
}

void LiveFeed::Begin() {
  parts_.moments.Watch(true);
  minute_.Begin();
  shown_.clear();
  seconds_.clear();
  second_ = {};
  known_.clear();
}

void LiveFeed::Count(const LiveMoments::Taken& taken) {
  const auto find = [&](std::uint32_t number) -> LiveModel* {
    const auto found = shown_.find(taken.models[number]);
    return found == shown_.end() ? nullptr : &found->second.model;
  };
  for (const auto& answer : taken.answers) {
    if (LiveModel* const model = find(answer.model)) model->Note(answer);
  }
  for (LiveMoments::Batch batch : taken.batches) {
    if (parts_.elsewhere) batch.predicted = {};
    second_.Note(taken.models[batch.model], batch.ended - batch.started, batch.predicted);
    // What was predicted follows what batches took; the profile does not.
    if (const auto ratio = ratios_.find(taken.models[batch.model]); ratio != ratios_.end()) {
      batch.predicted = FromMillis(ToMillis(batch.predicted) / ratio->second);
    }
    if (LiveModel* const model = find(batch.model)) model->Note(batch);
  }
}

LiveFeed::EndedByName LiveFeed::ReadEnded() const {
  EndedByName by_name;
  for (const auto& [model, counts] : parts_.metrics.of_clients()) {
    AddTo(by_name[model.first].of_clients, counts);
  }
  for (const auto& [model, counts] : parts_.metrics.of_steps()) {
    AddTo(by_name[model.first].steps, counts);
  }
  return by_name;
}

void LiveFeed::Keep(const RuntimeReading& reading, const EndedByName& by_name) {
  const double seconds = ToSeconds(reading.uptime - std::exchange(uptime_before_, reading.uptime));
  busy_.assign(reading.lanes.size(), 0);
  for (std::size_t i = 0; i < reading.lanes.size(); ++i) {
    if (lanes_before_.size() != reading.lanes.size() || seconds <= 0) break;
    second_.deaths += reading.lanes[i].deaths - lanes_before_[i].deaths;
    // Slots run beside each other; on servers of a site, a batch's time is booked when it ends.
    const Duration ran = reading.lanes[i].busy - lanes_before_[i].busy;
    busy_[i] = std::clamp(ToSeconds(ran) / seconds, 0.0, 1.0);
  }
  lanes_before_ = reading.lanes;
  OutcomeCounts ended{};
  for (const auto& [name, counts] : by_name) AddTo(ended, counts.of_clients);
  const OutcomeCounts before = std::exchange(ended_before_, ended);
  const auto refused = parts_.metrics.refusals();
  const auto refused_before = std::exchange(refused_before_, refused);
  ended_ = {};
  refused_ = {};
  if (!std::exchange(begun_, true) || seconds <= 0) return;
  for (std::size_t i = 0; i < ended.size(); ++i) ended_[i] = ended[i] - before[i];
  Past past{.waiting = reading.pending};
  for (std::size_t i = 0; i < refused.size(); ++i) {
    refused_[i] = refused[i] - refused_before[i];
    past.refused += static_cast<double>(refused_[i]) / seconds;
  }
  for (std::size_t i = 0; i < ended_.size(); ++i) {
    const auto outcome = static_cast<Outcome>(i);
    const double rate = static_cast<double>(ended_[i]) / seconds;
    if (outcome == Outcome::kMet) past.met = rate;
    if (outcome != Outcome::kMet && outcome != Outcome::kCancelled) past.missed += rate;
  }
  int running = 0;
  for (std::size_t i = 0; i < busy_.size(); ++i) {
    if (reading.lanes[i].held) continue;
    past.busy += busy_[i];
    ++running;
  }
  past.busy /= std::max(running, 1);
  past_.push_back(past);
  if (past_.size() > kKeptSeconds) past_.pop_front();
}

// Whoever comes or goes between two seconds makes neither shorter.
bool LiveFeed::SecondIsOver() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_second_) return false;
  next_second_ += kSecond;
  if (next_second_ <= now) next_second_ = now + kSecond;  // the first, or one that came late
  return true;
}

void LiveFeed::LearnModels(const RuntimeReading& reading) {
  for (const ModelState& state : reading.models) {
    if (state.state != "READY") continue;
    auto spec = parts_.find(state.name, state.version);
    if (spec == nullptr) continue;
    const auto [found, fresh] = shown_.try_emplace(state.name, Shown{spec, LiveModel(spec->slo)});
    found->second.model.SetSlo(spec->slo);
    found->second.spec = std::move(spec);
  }
  for (const ModelStatistics& each : reading.statistics) {
    const bool known = !each.latency_ratios.empty() && each.latency_ratios[0] > 0;
    ratios_[each.name] = known ? each.latency_ratios[0] : 1;
  }
}

void LiveFeed::Second(const EndedByName& by_name) {
  for (auto& [name, shown] : shown_) {
    const auto found = by_name.find(name);
    const Ended ended = found == by_name.end() ? Ended{} : found->second;
    OutcomeCounts total = ended.of_clients;
    AddTo(total, ended.steps);
    shown.model.Second(total, ended.steps);
  }
  second_.busy = past_.empty() ? 0 : past_.back().busy;
  seconds_.push_back(std::exchange(second_, {}));
  if (seconds_.size() > LiveModel::kSeconds) seconds_.pop_front();
}

std::string LiveFeed::StateText(const RuntimeReading& reading) const {
  Json models = Json::array();
  for (const ModelState& state : reading.models) {
    Json model{{"name", state.name}, {"version", state.version}, {"state", state.state}};
    if (!state.reason.empty()) model["reason"] = state.reason;
    const auto shown = shown_.find(state.name);
    if (shown != shown_.end()) {
      const ModelSpec& spec = *shown->second.spec;
      model["platform"] = spec.platform;
      model["settable"] = parts_.settable && parts_.settable(state.name);
      model["slo_ms"] = ToMillis(spec.slo);
      model["max_batch"] = spec.max_batch;
      for (const ExitSpec& exit : spec.exits) {
        model["exits"].push_back(exit.name);
        if (exit.accuracy > 0) model["accuracies"].push_back(exit.accuracy);
      }
    }
    models.push_back(std::move(model));
  }
  return TextOf({{"policy", parts_.policy},
                 {"lanes", reading.lanes.size()},
                 {"lane", parts_.lane},
                 {"streams", parts_.streams},
                 {"policies", parts_.policies},
                 {"journal", parts_.journal},
                 {"names", names_},
                 {"models", std::move(models)}});
}

// MET, MISSED, WAITING, BUSY %, REFUSED of each second, the newest last.
std::string LiveFeed::PastText() const {
  Json seconds = Json::array();
  for (const Past& past : past_) {
    seconds.push_back({std::llround(past.met), std::llround(past.missed), past.waiting,
                       std::llround(100 * past.busy), std::llround(past.refused)});
  }
  return TextOf({{"seconds", std::move(seconds)}});
}

std::string LiveFeed::TickText(const LiveMoments::Taken& taken,
                               const RuntimeReading* second) const {
  std::vector<Bar> bars = BarsOf(taken.batches, kMostBars);
  const int not_drawn = LeaveMost(bars, kMostBars);
  TimePoint from = kNever;
  for (const Bar& bar : bars) from = std::min(from, bar.batch.started);
  for (const LiveMoments::Answer& each : taken.answers) {
    if (WasGivenUp(each)) from = std::min(from, each.record.ended);
  }
  Json tick{{"from_ms", from == kNever ? 0 : Rounded(ToMillis(from - kStart), 10)},
            {"bars", BarsJson(bars, from)}};
  const Drops drops = DropsOf(taken.answers, from, kMostDrops);
  tick["drops"] = drops.numbers;
  if (!drops.unplaced.empty()) tick["unplaced"] = drops.unplaced;
  if (not_drawn > 0) tick["not_drawn"] = not_drawn;
  if (taken.lost > 0) tick["lost"] = taken.lost;
  if (second == nullptr) return TextOf(tick);
  Json& lanes = tick["lanes"] = Json::array();
  for (std::size_t i = 0; i < second->lanes.size(); ++i) {
    lanes.push_back(
        {Rounded(100 * busy_[i], 10), second->lanes[i].held ? 1 : 0, second->lanes[i].deaths});
  }
  Json& models = tick["models"] = Json::object();
  for (const auto& [name, shown] : shown_) {
    const LiveModel::Window last = shown.model.Last();
    if (std::accumulate(last.ended.begin(), last.ended.end(), std::uint64_t{0}) == 0) continue;
    models[name] = {{"ended", last.ended},
                    {"steps", last.steps},
                    {"seconds", last.seconds},
                    {"p50_ms", Rounded(ToMillis(last.p50), 100)},
                    {"p99_ms", Rounded(ToMillis(last.p99), 100)},
                    {"rows", Rounded(last.rows, 10)},
                    {"slower", Rounded(last.slower, 100)},
                    {"exits", last.exits},
                    {"why", shown.model.WhyMissed(seconds_)}};
  }
  for (const ModelStatistics& each : second->statistics) {
    if (const auto found = models.find(each.name); found != models.end()) {
      (*found)["waiting"] = each.pending;
    }
  }
  tick["uptime_s"] = Rounded(ToSeconds(second->uptime), 10);
  tick["waiting"] = second->pending;
  tick["ended"] = ended_;
  Json& refused = tick["refused"] = Json::object();
  for (std::size_t i = 0; i < refused_.size(); ++i) {
    if (refused_[i] > 0) refused[Name(static_cast<RefusalReason>(i))] = refused_[i];
  }
  return TextOf(tick);
}

void LiveFeed::Send(std::string_view event, const std::string& json,
                    const std::vector<std::shared_ptr<FeedWatcher>>& watchers) {
  const auto piece =
      std::make_shared<const std::string>(fmt::format("event: {}\ndata: {}\n\n", event, json));
  for (const auto& each : watchers) each->Put(piece);
}

}  // namespace tactus
