#include "serving/what_if.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <pthread.h>
#include <sched.h>

namespace tactus {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostSettings = 32;

Expected<std::vector<std::string>> SettingsOf(std::string_view question) {
  const Json json = Json::parse(question, nullptr, false);
  const auto wrong = [] {
    return InvalidArgument(
        fmt::format(R"(the question must be {{"set": ["KEY=VALUE", ...]}}, of at most {} settings)",
                    kMostSettings));
  };
  if (!json.is_object() || json.size() != 1 || !json.contains("set")) return wrong();
  const Json& set = json["set"];
  if (!set.is_array() || set.size() > kMostSettings) return wrong();
  std::vector<std::string> settings;
  for (const Json& each : set) {
    if (!each.is_string()) return wrong();
    settings.push_back(each.get<std::string>());
  }
  return settings;
}

double Rounded(double value) { return std::round(1000 * value) / 1000; }

Json JsonOf(const Summary& figures) {
  Json json{{"requests", figures.requests},
            {"in_time_percent", Rounded(100 * (1 - figures.bad_ratio))},
            {"p50_ms", Rounded(figures.p50_ms)},
            {"p95_ms", Rounded(figures.p95_ms)},
            {"p99_ms", Rounded(figures.p99_ms)},
            {"mean_batch", Rounded(figures.mean_batch)}};
  if (figures.accuracy > 0) json["accuracy"] = Rounded(figures.accuracy);
  return json;
}

// `slots`: of a lane, whose batches run beside each other.
Json JsonOf(const RunReport& run, int slots) {
  Json json = JsonOf(run.all);
  json["policy"] = run.policy;
  json["busy_percent"] = Rounded(100 * BusyRatio(run) / slots);
  Json& models = json["models"] = Json::object();
  for (const ModelSummary& model : run.models) {
    models[model.name] = JsonOf(model.figures);
    models[model.name]["slo_ms"] = Rounded(model.slo_ms);
  }
  return json;
}

Duration ProcessorTime() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return Seconds(used.tv_sec) + Duration(used.tv_nsec);
}

}  // namespace

Observed ObservedOf(const LiveMinute::Kept& kept, const JournalHeader& setting,
                    const std::shared_ptr<const ServedModels>& served) {
  // A server may have run for months; the run begins at 0.
  TimePoint begin = kept.from;
  for (const auto& answer : kept.answers) begin = std::min(begin, answer.record.arrival);
  for (const auto& batch : kept.batches) begin = std::min(begin, batch.decided);
  const auto moved = [&](TimePoint at) { return at == kNever ? kNever : kStart + (at - begin); };
  std::map<std::string, std::uint32_t> ids;
  for (std::uint32_t m = 0; m < served->models.size(); ++m) {
    if (served->models[m].loaded) ids[served->models[m].name] = m;
  }
  std::vector<std::optional<std::uint32_t>> id_of;  // by the minute's number
  for (const std::string& name : kept.models) {
    const auto id = ids.find(name);
    id_of.push_back(id == ids.end() ? std::nullopt : std::optional(id->second));
  }

  Observed seen{.name = "the last minute",
                .setting = setting,
                .first = moved(kept.from),
                .end = moved(kept.to)};
  for (std::uint32_t m = 0; m < served->models.size(); ++m) seen.models.push_back({served, m});
  seen.lanes.resize(setting.lanes.size());
  seen.arrivals.resize(served->models.size());
  for (const auto& batch : kept.batches) {
    if (!id_of[batch.model] || batch.lane >= seen.lanes.size()) continue;
    // As a simulated batch: from its decision until its lane was free for another.
    seen.lanes[batch.lane].busy += batch.learnt - batch.decided;
    ++seen.lanes[batch.lane].batches;
    if (batch.failed) continue;
    seen.took[{*id_of[batch.model], batch.exit, batch.rows}].push_back(
        {moved(batch.decided), batch.learnt - batch.decided});
  }
  for (const LiveMoments::Answer& answer : kept.answers) {
    if (answer.record.outcome == Outcome::kCancelled) continue;
    const std::uint32_t rows = answer.rows;
    if (answer.pipeline) continue;  // its steps are there
    if (!id_of[answer.model]) {
      ++seen.left_out;
      continue;
    }
    if (rows > 1) ++seen.of_many_rows;
    if (answer.step) seen.steps += rows;
    RequestRecord record = answer.record;
    record.model = *id_of[answer.model];
    for (TimePoint* at : {&record.arrival, &record.deadline, &record.started, &record.ended}) {
      *at = moved(*at);
    }
    const Request request{.arrival = record.arrival, .deadline = record.deadline};
    seen.records.insert(seen.records.end(), rows, record);
    seen.arrivals[record.model].insert(seen.arrivals[record.model].end(), rows,
                                       {request, record.arrival});
  }
  for (auto& model : seen.arrivals) std::ranges::stable_sort(model, {}, &RecordedRequest::known);
  return seen;
}

WhatIf::WhatIf(Parts parts) : parts_(std::move(parts)) {}

void WhatIf::Ask(std::string question, Reply reply) {
  if (asked_.exchange(true)) {
    return reply(Fail(ErrorCode::kResourceExhausted,
                      "another what-if is being answered: ask again in a second"));
  }
  thread_.Post([this, question = std::move(question), reply = std::move(reply)](bool refused) {
    Expected<std::string> answer = refused || stopped_
                                       ? Fail(ErrorCode::kUnavailable, "the server is stopping")
                                       : Answer(question);
    asked_ = false;
    reply(std::move(answer));
  });
}

void WhatIf::Stop() {
  stopped_ = true;
  thread_.Stop();
}

Expected<std::string> WhatIf::Answer(std::string_view question) const {
  const sched_param lowest{};
  pthread_setschedparam(pthread_self(), SCHED_IDLE, &lowest);  // for good: it is this one's thread
  const auto settings = SettingsOf(question);
  if (!settings) return std::unexpected(settings.error());
  if (Status known = CheckSettings(*settings); !known) return std::unexpected(known.error());
  if (const double busy = parts_.busy(); busy > kBusy) {
    return Fail(ErrorCode::kResourceExhausted,
                fmt::format("the machine is {:.0f} % busy: a what-if would take its lanes' time. "
                            "With `tactus serve --journal FILE` it is asked on another machine: "
                            "tactus simulate --from-journal FILE",
                            100 * busy));
  }
  const LiveMinute::Kept kept = parts_.minute();
  if (kept.to - kept.from < kLeast) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("there are {:.1f} s of calls since the page was opened: ask again when "
                            "there are {:.0f}",
                            ToSeconds(kept.to - kept.from), ToSeconds(kLeast)));
  }
  const Observed seen = ObservedOf(kept, parts_.setting, parts_.served());
  auto run = RunOf(seen);
  if (!run) return std::unexpected(std::move(run.error()));
  const Duration began = ProcessorTime();
  const auto go_on = [&](std::size_t, std::size_t) {
    return !stopped_ && ProcessorTime() - began < kProcessor;
  };
  const auto tried = TryOther(*std::move(run), *settings, go_on);
  if (!tried && tried.error().code == ErrorCode::kCancelled) {
    if (stopped_) return Fail(ErrorCode::kUnavailable, "the server is stopping");
    return Fail(ErrorCode::kResourceExhausted,
                fmt::format("it takes more than {:.0f} s of a processor: with `tactus serve "
                            "--journal FILE` it is asked elsewhere: tactus simulate "
                            "--from-journal FILE",
                            ToSeconds(kProcessor)));
  }
  if (!tried) return std::unexpected(tried.error());
  Json answer{{"seconds", Rounded(ToSeconds(kept.to - kept.from))},
              {"left_out", seen.left_out},
              {"of_many_rows", seen.of_many_rows},
              {"steps", seen.steps},
              {"ago_seconds", Rounded(ToSeconds(kept.ago))},
              {"was", JsonOf(tried->was, tried->slots)},
              {"same", JsonOf(tried->same, tried->slots)},
              {"own_deadlines", tried->own_deadlines}};
  if (tried->other) answer["other"] = JsonOf(*tried->other, tried->other_slots);
  return answer.dump(-1, ' ', false, Json::error_handler_t::replace);
}

double BusyPart() {
  // user nice system idle iowait irq softirq steal, in ticks
  using Ticks = std::array<double, 8>;
  const auto read = [] {
    Ticks ticks{};
    std::ifstream file("/proc/stat");
    std::string cpu;
    file >> cpu;
    for (double& each : ticks) file >> each;
    return file ? ticks : Ticks{};
  };
  const Ticks before = read();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const Ticks after = read();
  const auto all = [](const Ticks& ticks) {
    return std::accumulate(ticks.begin(), ticks.end(), 0.0);
  };
  const auto idle = [](const Ticks& ticks) { return ticks[3] + ticks[4]; };
  const double passed = all(after) - all(before);
  return passed > 0 ? 1 - (idle(after) - idle(before)) / passed : 0;
}

}  // namespace tactus
