#include "sim/fleet/fleet_world.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/weighted_turn.h"
#include "planners/fleet_registry.h"

namespace tactus {
namespace {

constexpr std::size_t kMostLatency = 5000;  // ms: what is later counts as this late

DeviceId SinkFrom(const FleetInput& input, DeviceId source) {
  const std::vector<DeviceId> servers = input.ServersFor(source);
  return servers.empty() ? source : servers.front();
}

RateTrace TraceOf(const FleetScenario& scenario, std::size_t link) {
  std::vector<RateStep> steps;
  if (link < scenario.link_rates.size()) {
    for (const LinkSample& each : scenario.link_rates[link]) {
      steps.push_back({kStart + FromSeconds(each.t_s), each.mbps});
    }
  }
  if (steps.empty()) return RateTrace(scenario.input.links[link].mbps);
  // The last sample holds as long as the one before it.
  const Duration step =
      steps.size() > 1 ? steps.back().at - steps[steps.size() - 2].at : Seconds(1);
  return RateTrace(steps, steps.back().at - kStart + step);
}

}  // namespace

FleetWorld::FleetWorld(const FleetScenario& scenario, const FleetSimulationOptions& options,
                       FleetPipelines pipelines)
    : scenario_(scenario),
      options_(options),
      input_(scenario.input),
      windows_(UseLimitOf(scenario.run.planner) == UseLimit::kKept),
      end_(kStart + FromSeconds(scenario.run.duration_s)),
      models_(input_),
      items_(scenario, scenario.run.seed),
      stages_(std::move(pipelines.stage)),
      flow_(std::move(pipelines.pipelines), *this),
      luck_(Rng::Stream(scenario.run.seed, "fleet/service")),
      down_(input_.devices.size()) {
  for (std::size_t l = 0; l < input_.links.size(); ++l) {
    for (int direction = 0; direction < 2; ++direction) {
      Link& made = links_.emplace_back(LinkOptions{
          .rate = TraceOf(scenario, l),
          .latency = input_.links[l].rtt / 2,
          .loss = input_.links[l].loss,
          .luck = Rng::Stream(scenario.run.seed, "fleet/link/" + std::to_string(links_.size()))});
      for (const LinkOutage& each : options.outages) {
        if (each.link == l) made.AddOutage(each.from, each.to);
      }
    }
  }
  for (const FleetDevice& device : input_.devices) {
    first_accelerator_.push_back(static_cast<std::uint32_t>(accelerators_.size()));
    for (int a = 0; a < device.accelerators; ++a) {
      accelerators_.emplace_back(scenario.run.crosstalk);
    }
  }
  ends_.Resize(accelerators_.size());
  for (const FleetPipeline& pipeline : input_.pipelines) {
    sinks_.push_back(SinkFrom(input_, pipeline.source));
    frames_of_.push_back(0);
    serving_from_.push_back(kNoGeneration);
    latency_ms_.emplace_back(kMostLatency + 1);
    report_.pipelines.push_back({.name = pipeline.name, .slo_ms = ToMillis(pipeline.slo)});
    for (const FleetStage& stage : pipeline.stages) {
      report_.stages.push_back({.pipeline = pipeline.name, .stage = stage.name});
    }
  }
}

FleetPipelineId FleetWorld::PipelineOf(const RunKey& key) const {
  return frames_[key.request.value()].pipeline;
}

const FleetFlowStage& FleetWorld::StageOf(const Run& run) const {
  return stages_[PipelineOf(run.key).value()][run.key.run.stage.value()];
}

FleetStageReport& FleetWorld::CountOf(const Run& run) {
  return report_.stages[models_.of(PipelineOf(run.key), StageOf(run).stage).value()];
}

Link* FleetWorld::LinkFor(DeviceId from, DeviceId to) {
  if (input_.devices[from.value()].site == input_.devices[to.value()].site) return nullptr;
  const std::size_t link = input_.LinkBetween(from, to);
  CHECK(link != kNoLink, "a plan that was looked through crosses links that there are");
  const bool back = input_.links[link].a != input_.devices[from.value()].site;
  return &links_[2 * link + (back ? 1 : 0)];
}

void FleetWorld::Arrive(FleetPipelineId p, TimePoint now) {
  const FleetPipeline& pipeline = input_.pipelines[p.value()];
  FleetPipelineReport& report = report_.pipelines[p.value()];
  const std::int64_t number = frames_of_[p.value()]++;
  const double t_s = ToSeconds(now - kStart);
  const auto minute = static_cast<std::size_t>(t_s / 60);
  const std::int64_t results = items_.Results(p, number, t_s);
  report.offered += results;
  report.offered_by_minute.resize(minute + 1);
  report.on_time_by_minute.resize(minute + 1);
  report.offered_by_minute[minute] += results;
  ++report.frames;
  ++report_.frames;
  answering_ = pipeline.source;
  answering_accuracy_ = 1;
  const TimePoint deadline = now + pipeline.slo;
  const PipelineRequestId id = flow_.Begin(p.value(), now, deadline);
  if (id.value() >= frames_.size()) frames_.resize(id.value() + 1);
  Frame& frame = frames_[id.value()];
  if (frame.runs.empty()) {
    frame.ended = false;  // it could not be met at all, and has ended already
  } else {
    frame.pipeline = p;
    frame.generation = serving_from_[p.value()];
    frame.number = number;
    frame.t_s = t_s;
    frame.arrival = now;
    frame.deadline = deadline;
    ++generations_[frame.generation].frames;
  }
  const Duration gap = FromSeconds(1 / pipeline.rate_rps);
  if (now + gap < end_) heap_.Push(now + gap, EventClass::kArrival, p.value());
}

std::uint32_t FleetWorld::NewRun() {
  if (free_runs_.empty()) {
    runs_.emplace_back();
    return static_cast<std::uint32_t>(runs_.size() - 1);
  }
  const std::uint32_t run = free_runs_.back();
  free_runs_.pop_back();
  return run;
}

void FleetWorld::Start(const RunKey& key, TimePoint, TimePoint deadline) {
  const std::uint32_t place = NewRun();
  if (key.request.value() >= frames_.size()) frames_.resize(key.request.value() + 1);
  Frame& frame = frames_[key.request.value()];
  runs_[place] = {.key = key,
                  .deadline = deadline,
                  .from = answering_,
                  .accuracy = answering_accuracy_,
                  .place = static_cast<std::uint32_t>(frame.runs.size()),
                  .state = RunState::kStarting};
  frame.runs.push_back(place);
  starts_.push_back(place);
}

// The dispatcher is not at work: the Flow is only ever told between its steps.
void FleetWorld::Cancel(const RunKey& key) {
  const Frame& frame = frames_[key.request.value()];
  const auto is_it = [&](std::uint32_t place) { return runs_[place].key == key; };
  const auto found = std::ranges::find_if(frame.runs, is_it);
  CHECK(found != frame.runs.end(), "only what was started is cancelled");
  Run& run = runs_[*found];
  run.cancelled = true;
  if (run.state != RunState::kQueued) return;  // it ends when its next event comes
  nodes_[run.node].node->Cancel(models_.of(PipelineOf(key), StageOf(run).stage), run.sent);
  Touch(run.node);
}

void FleetWorld::Ended(const PipelineEnd& end) {
  ++report_.ended;
  if (end.request.value() < frames_.size()) frames_[end.request.value()].ended = true;
}

void FleetWorld::Answered(std::uint32_t, const Request& request, double accuracy) {
  runs_[request.payload].accuracy *= accuracy;
  endings_.push_back({.run = static_cast<std::uint32_t>(request.payload), .answered = true});
}

void FleetWorld::Refused(std::uint32_t, const Request& request, DropReason reason) {
  endings_.push_back({.run = static_cast<std::uint32_t>(request.payload), .reason = reason});
}

void FleetWorld::StartRun(std::uint32_t place, TimePoint now) {
  Run& run = runs_[place];
  if (run.cancelled) return Tell({.run = place, .reason = DropReason::kCancelled}, now);
  const FleetFlowStage& stage = StageOf(run);
  if (stage.crop) return Crop(place, stage, now);
  const FleetPipelineId p = PipelineOf(run.key);
  ++CountOf(run).runs;
  ++report_.items;
  Generation& generation = generations_[frames_[run.key.request.value()].generation];
  auto& routes = generation.routes[models_.of(p, stage.stage).value()];
  if (routes.to.empty()) return End({.run = place, .reason = DropReason::kUnloaded}, now);
  const std::size_t turn =
      TakeTurn(routes.credit, [&](std::size_t r) { return std::optional(routes.to[r].weight); });
  const DeviceId to = routes.to[turn].device;
  run.node = generation.nodes[to.value()];
  if (stage.last) run.deadline -= SinkHop(p, stage.stage, to);
  const FleetStage& said = input_.pipelines[p.value()].stages[stage.stage.value()];
  const Duration least = flow_.pipelines()[p.value()].stages[run.key.run.stage.value()].least;
  Send(place, to, said.in_kb, run.deadline - least, RunState::kOnLink, now);
}

// Its rows lie where the answer lies that it cuts up.
void FleetWorld::Crop(std::uint32_t place, const FleetFlowStage& stage, TimePoint now) {
  const Run run = runs_[place];
  const FleetPipelineId p = PipelineOf(run.key);
  const Frame& frame = frames_[run.key.request.value()];
  const int rows = items_.Rows(p, stage.stage, frame.number, run.key.run.item, frame.t_s);
  answering_ = run.from;
  answering_accuracy_ = run.accuracy;
  FreeRun(place);
  flow_.Answered(run.key, rows, now);
  FreeFrame(run.key.request);
}

void FleetWorld::Send(std::uint32_t place, DeviceId to, double kilobytes, TimePoint latest,
                      RunState state, TimePoint now) {
  Run& run = runs_[place];
  run.state = state;
  run.link = SendOutcome::kDelivered;
  Link* const link = LinkFor(run.from, to);
  if (link == nullptr) {
    run.from = to;
    return LinkDone(place, now);
  }
  const Sending sent = link->Send(now, kilobytes * 1e3, latest);
  run.link = sent.outcome;
  if (sent.outcome == SendOutcome::kDelivered) run.from = to;
  if (sent.at <= now) return LinkDone(place, now);
  heap_.Push(sent.at, EventClass::kStage, place);
}

void FleetWorld::LinkDone(std::uint32_t place, TimePoint now) {
  Run& run = runs_[place];
  if (run.cancelled) return End({.run = place, .reason = DropReason::kCancelled}, now);
  if (run.link != SendOutcome::kDelivered) {
    return End({.run = place, .reason = DropReason::kExpired}, now);
  }
  if (run.state == RunState::kToSink) return Tell({.run = place, .answered = true}, now);
  Enter(place, now);
}

void FleetWorld::Enter(std::uint32_t place, TimePoint now) {
  Run& run = runs_[place];
  run.state = RunState::kQueued;
  run.sent = RequestId{sent_++};
  const FleetPipelineId p = PipelineOf(run.key);
  const FleetStageId stage = StageOf(run).stage;
  const ModelId model = models_.of(p, stage);
  Touch(run.node);
  control_->Count(run.from, input_.pipelines[p.value()].stages[stage.value()].model);
  nodes_[run.node].node->Arrive(
      model, {.id = run.sent, .arrival = now, .deadline = run.deadline, .payload = place});
}

// Counts what became of a run, and sends a last answer on to the sink.
void FleetWorld::End(const Ending& ending, TimePoint now) {
  Run& run = runs_[ending.run];
  FleetStageReport& count = CountOf(run);
  if (ending.answered) {
    ++count.answered;
    const FleetPipelineId p = PipelineOf(run.key);
    const FleetFlowStage& stage = StageOf(run);
    const Frame& frame = frames_[run.key.request.value()];
    if (!stage.last || run.from == SinkOf(p)) return Tell(ending, now);
    const double out_kb = input_.pipelines[p.value()].stages[stage.stage.value()].out_kb;
    return Send(ending.run, SinkOf(p), out_kb, frame.deadline, RunState::kToSink, now);
  }
  if (run.state == RunState::kToSink) {
    --count.answered;
    ++(run.link == SendOutcome::kFull ? count.link_full : count.link_dead);
  } else if (ending.reason == DropReason::kCancelled) {
    ++count.cancelled;
  } else if (run.state == RunState::kOnLink) {
    ++(run.link == SendOutcome::kFull ? count.link_full : count.link_dead);
  } else {
    ++(ending.reason == DropReason::kExpired ? count.expired : count.shed);
  }
  Tell(ending, now);
}

void FleetWorld::Tell(const Ending& ending, TimePoint now) {
  const Run run = runs_[ending.run];
  if (ending.answered && StageOf(run).last) CountResult(run, now);
  answering_ = run.from;
  answering_accuracy_ = run.accuracy;
  FreeRun(ending.run);
  if (ending.answered) {
    flow_.Answered(run.key, 1, now);
  } else {
    flow_.Refused(run.key, ending.reason, now);
  }
  FreeFrame(run.key.request);
}

void FleetWorld::CountResult(const Run& run, TimePoint now) {
  const Frame& frame = frames_[run.key.request.value()];
  const std::size_t p = PipelineOf(run.key).value();
  FleetPipelineReport& report = report_.pipelines[p];
  const auto ms = static_cast<std::size_t>(ToMillis(now - frame.arrival));
  ++latency_ms_[p][std::min(ms, kMostLatency)];
  const bool on_time = now <= frame.deadline;
  ++(on_time ? report.on_time : report.late);
  if (on_time) report.value += run.accuracy;
  const auto minute = static_cast<std::size_t>(frame.t_s / 60);
  if (on_time) ++report.on_time_by_minute[minute];
}

void FleetWorld::FreeRun(std::uint32_t place) {
  Run& run = runs_[place];
  Frame& frame = frames_[run.key.request.value()];
  const std::uint32_t last = frame.runs.back();
  frame.runs[run.place] = last;
  runs_[last].place = run.place;
  frame.runs.pop_back();
  run.state = RunState::kFree;
  free_runs_.push_back(place);
}

// The frame's generation may be left by its last one.
void FleetWorld::FreeFrame(PipelineRequestId id) {
  Frame& frame = frames_[id.value()];
  if (!frame.ended || !frame.runs.empty()) return;
  frame.ended = false;
  --generations_[frame.generation].frames;
  MayRetire(frame.generation);
}

}  // namespace tactus
