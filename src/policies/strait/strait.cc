#include "policies/strait/strait.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/batch.h"

namespace tactus {
namespace {

Duration Stretch(Duration kernel, double degree) {
  return Duration{std::llround(static_cast<double>(kernel.count()) * degree)};
}

}  // namespace

Strait::Strait(std::string name, const StraitOptions& options)
    : name_(std::move(name)),
      options_(options),
      interference_(options.interference),
      throttle_(options.throttle),
      order_(options.formation, options.ordered) {}

// `view` names a table that lives as long as the deployment does: until the next Prepare.
void Strait::Prepare(const View& view) {
  profile_ = &view.profile;
  order_.Prepare(view);
  lost_.Prepare(view);
  hungry_.resize(view.models.size(), kNever);
  dropped_.resize(view.models.size(), false);
  if (!devices_.empty()) return;  // what runs goes on; lanes stay
  for (const Lane& lane : view.lanes) devices_.emplace_back(lane.slots);
}

Decision Strait::Decide(const View& view, TimePoint now) {
  launched_.reset();
  if (missed_) throttle_.Miss(now);
  missed_ = false;
  if (const auto drop = lost_.Find(view, now)) {
    if (order_.level(drop->model) == 0) throttle_.Miss(now);
    dropped_[drop->model.value()] = true;
    given_up_ = *drop;
    return *drop;
  }
  TrackHunger(view, now);
  TimePoint wake = lost_.next();
  if (const auto fed = Feed(view, now)) return *fed;
  for (const ModelId m : order_.Sorted(view)) {
    const TimePoint starves = hungry_[m.value()] + options_.starve;
    if (starves > now) wake = std::min(wake, starves);
    const TimePoint ready = ReadyAt(view, m, now);
    if (ready > now) {
      wake = std::min(wake, ready);
    } else if (const auto decision = Try(view, m, now)) {
      return *decision;
    }
  }
  return Wait{wake};
}

// When a batch of the model may go, full or not. Waiting has to pay: a device that this batch does
// not fill runs it now and is none the slower for the others, who can follow beside it. And it has
// to be cheap: what the first request spends here is lost for the neighbours that it will meet.
TimePoint Strait::ReadyAt(const View& view, ModelId m, TimePoint now) const {
  TimePoint ready = order_.ReadyAt(view, m);
  if (ready <= now) return ready;
  const RequestQueue& queue = view.queues[m.value()];
  const int largest = LargestBatch(view, m);
  const int batch = queue.Batchable(largest);
  const ExitId exit = FinalExit(view.profile, m);
  for (const Lane& lane : view.lanes) {
    if (!lane.HasFreeSlot() || !lane.serves.contains(m)) continue;
    const Throughput& own = view.profile.Use(m, exit, batch, lane.lane_class).throughput;
    if (Peak(devices_[lane.id.value()].total() + own) <= options_.room) return now;
    const Duration full = view.profile.Latency(m, exit, largest, lane.lane_class);
    ready = std::min(ready, queue.front().deadline - Stretch(full, options_.slack));
  }
  return ready;
}

// Algorithm 1 for one queue: the largest feasible batch by bisection. Feasibility is taken to fall
// with the batch; where it does not, the answer is feasible and may not be the largest.
std::optional<Decision> Strait::Try(const View& view, ModelId m, TimePoint now) {
  const RequestQueue& queue = view.queues[m.value()];
  Candidate candidate{.model = m,
                      .exit = FinalExit(view.profile, m),
                      .level = order_.level(m),
                      .deadline = queue.front().deadline};
  int least = 0;
  int most = queue.Batchable(LargestBatch(view, m));
  std::optional<Place> best;
  while (least < most) {
    candidate.batch = (least + most + 1) / 2;
    if (const auto place = FindPlace(view, candidate, now)) {
      best = place;
      least = candidate.batch;
    } else {
      most = candidate.batch - 1;
    }
  }
  if (!best) return std::nullopt;
  candidate.batch = least;
  return Launch(candidate, best->lane);
}

// A queue that has waited for `starve` gets one request served, on the emptiest lane.
std::optional<Decision> Strait::Feed(const View& view, TimePoint now) {
  ModelId hungriest;
  for (std::size_t m = 0; m < hungry_.size() && m < view.queues.size(); ++m) {
    if (view.queues[m].empty() || hungry_[m] + options_.starve > now) continue;
    if (hungriest.valid() && hungry_[hungriest.value()] <= hungry_[m]) continue;
    hungriest = ModelId{static_cast<ModelId::rep>(m)};
  }
  if (!hungriest.valid()) return std::nullopt;
  const Lane* emptiest = nullptr;
  for (const Lane& lane : view.lanes) {
    if (!lane.HasFreeSlot() || !lane.serves.contains(hungriest)) continue;
    if (emptiest == nullptr || lane.batches.size() < emptiest->batches.size()) emptiest = &lane;
  }
  if (emptiest == nullptr) return std::nullopt;
  return Launch({.model = hungriest, .exit = FinalExit(view.profile, hungriest), .batch = 1},
                emptiest->id);
}

Decision Strait::Launch(const Candidate& candidate, LaneId lane) {
  launched_ = Dispatch{candidate.model, candidate.exit, candidate.batch, lane};
  return *launched_;
}

// A queue is hungry from its first request on that is neither served nor gone for good.
void Strait::TrackHunger(const View& view, TimePoint now) {
  for (std::size_t m = 0; m < view.queues.size(); ++m) {
    const bool content = view.queues[m].empty() && !dropped_[m];
    if (content || hungry_[m] == kNever) hungry_[m] = now;
  }
}

std::optional<Strait::Place> Strait::FindPlace(const View& view, const Candidate& candidate,
                                               TimePoint now) {
  std::optional<Place> best;
  for (const Lane& lane : view.lanes) {
    if (!lane.HasFreeSlot() || !lane.serves.contains(candidate.model)) continue;
    ++examined_;
    const DeviceRecord& device = devices_[lane.id.value()];
    const Throughput& own =
        view.profile.Use(candidate.model, candidate.exit, candidate.batch, lane.lane_class)
            .throughput;
    if (Violates(device, own, candidate.level, now)) continue;
    const Duration estimate = Estimate(view, candidate, lane, now);
    if (now + estimate > candidate.deadline) continue;  // meet()
    if (!best || estimate < best->estimate) best = Place{lane.id, estimate};
  }
  return best;
}

bool Strait::Violates(const DeviceRecord& device, const Throughput& own, int level,
                      TimePoint now) const {
  if (options_.capped && level > 0 && ExceedsCap(device, own, now)) return true;
  if (!options_.protects) return false;
  return std::any_of(device.running().begin(), device.running().end(),
                     [&](const OngoingBatch& batch) {
                       return batch.level <= level && WouldMiss(device, batch, own, now) &&
                              !WouldMiss(device, batch, {}, now);
                     });
}

bool Strait::ExceedsCap(const DeviceRecord& device, const Throughput& own, TimePoint now) const {
  Throughput low = own;
  bool others = false;
  for (const OngoingBatch& batch : device.running()) {
    if (batch.level == 0) continue;
    low = low + batch.own;
    others = true;
  }
  return others && Peak(low) > throttle_.Cap(now);
}

// Section 3.3: what it has done so far follows from what it has met so far; the rest runs beside
// what is here now and `added`.
bool Strait::WouldMiss(const DeviceRecord& device, const OngoingBatch& batch,
                       const Throughput& added, TimePoint now) const {
  Exposure exposure{device.MeanMet(batch, now), batch.own, batch.level};
  const Duration passed = std::max(now - batch.uploaded, Duration{});
  const Duration done = Stretch(passed, 1 / interference_.Degree(exposure));
  const Duration left = std::max(batch.kernel - done, Duration{});
  exposure.neighbours = device.total() - batch.own + added;
  const TimePoint end =
      std::max(now, batch.uploaded) + Stretch(left, interference_.Degree(exposure));
  return end > batch.deadline;
}

// Eq. 1 without the time already waited, which the deadline knows.
Duration Strait::Estimate(const View& view, const Candidate& candidate, const Lane& lane,
                          TimePoint now) const {
  const Duration alone =
      view.profile.Latency(candidate.model, candidate.exit, candidate.batch, lane.lane_class);
  if (!options_.meets) return alone;
  const ResourceUse& use =
      view.profile.Use(candidate.model, candidate.exit, candidate.batch, lane.lane_class);
  const DeviceRecord& device = devices_[lane.id.value()];
  const Duration transfer = std::max(device.link_free() - now, Duration{});
  const double degree =
      interference_.Degree({options_.half * device.total(), use.throughput, candidate.level});
  return alone + transfer + Stretch(alone - use.transfer, degree - 1);
}

// Requests that leave without our word are lost to their deadline, or were cancelled with it near.
void Strait::OnPopFront(ModelId m, int count) {
  const bool ours = (launched_ && launched_->model == m && launched_->batch == count) ||
                    (given_up_ && given_up_->model == m && given_up_->count == count);
  if (ours && launched_) {
    dropped_[m.value()] = false;
  } else if (!ours) {
    dropped_[m.value()] = true;
    missed_ |= order_.level(m) == 0;
  }
  given_up_.reset();
}

OngoingBatch Strait::Record(const RunningBatch& batch, const Lane& lane) const {
  const Duration alone = profile_->Latency(batch.model, batch.exit, batch.batch, lane.lane_class);
  const ResourceUse& use = profile_->Use(batch.model, batch.exit, batch.batch, lane.lane_class);
  return {.id = batch.id,
          .level = order_.level(batch.model),
          .deadline = batch.deadline,
          .launched = batch.started,
          .kernel = alone - use.transfer,
          .own = use.throughput};
}

// A batch that is not in the record yet has just begun.
void Strait::OnLaneChange(const Lane& lane) {
  DeviceRecord& device = devices_[lane.id.value()];
  for (const RunningBatch& batch : lane.running()) {
    const auto running = device.running();
    const bool known = std::any_of(running.begin(), running.end(),
                                   [&](const OngoingBatch& o) { return o.id == batch.id; });
    if (known) continue;
    const Duration transfer =
        profile_->Use(batch.model, batch.exit, batch.batch, lane.lane_class).transfer;
    device.Add(Record(batch, lane), transfer, batch.started);
    hungry_[batch.model.value()] = batch.started;
  }
}

void Strait::OnBatchDone(LaneId lane, const RunningBatch& batch, const BatchReport& report,
                         TimePoint now) {
  DeviceRecord& device = devices_[lane.value()];
  OngoingBatch done;
  if (!device.Remove(batch.id, now, report.started + report.upload, done)) return;
  if (done.level == 0 && now > done.deadline) missed_ = true;
  if (report.status != BatchStatus::kOk || done.kernel <= Duration{}) return;
  const Exposure exposure{device.MeanMet(done, now), done.own, done.level};
  const Duration took = report.ended - report.started - report.upload;
  if (!(Peak(exposure.neighbours) > 0) || took <= Duration{}) return;
  const double actual = ToSeconds(took) / ToSeconds(done.kernel);
  errors_.Add(interference_.Degree(exposure), actual);
  interference_.Learn(exposure, actual);
}

}  // namespace tactus
