#include "policies/strait/strait_records.h"

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

StraitRecords::StraitRecords(std::string name, const StraitOptions& options)
    : Policy({.name = std::move(name), .least = LeastService{}}),
      options_(options),
      interference_(options.interference),
      throttle_(options.throttle),
      tail_(options.interference.learn ? options.tail_quantile : 0),
      order_(options.formation, options.ordered) {}

// `view` names a table and queues that live as long as the served models do: until the next
// Prepare.
void StraitRecords::Prepare(const View& view) {
  profile_ = &view.profile;
  departures_.Prepare(view);
  order_.Prepare(view);
  // Where nothing is loaded for a while nothing is forgotten.
  if (const auto now = order_.levels().priorities(); !now.empty()) {
    if (!priorities_.empty()) interference_.Relevel(priorities_, now);
    priorities_.assign(now.begin(), now.end());
  }
  lost_.Prepare(view);
  slos_.clear();
  for (const Model& model : view.models) slos_.push_back(model.slo);
  hungry_.resize(view.models.size(), kNever);
  dropped_.resize(view.models.size(), false);
  empty_.resize(view.models.size(), kNever);
  if (!devices_.empty()) return;  // what runs goes on; lanes stay
  for (const Lane& lane : view.lanes) devices_.emplace_back(lane.slots);
}

std::optional<Drop> StraitRecords::EarlyDrop(const View& view, TimePoint now, TimePoint& wake) {
  if (departures_.NextQuestion()) throttle_.Miss(now);
  if (const auto drop = lost_.Find(view, now)) {
    const RequestQueue& queue = view.queues[drop->model.value()];
    if (order_.LevelOfFirst(queue, drop->model, drop->count) == 0) throttle_.Miss(now);
    return departures_.Answer(*drop);
  }
  wake = std::min(wake, lost_.next());
  return std::nullopt;
}

// When a batch of the model may go, full or not. Waiting has to pay: a device that this batch does
// not fill runs it now and is none the slower for the others, who can follow beside it. In the last
// slot nobody can follow, and where a slot is a core its batches had better be large: there it
// waits, whatever room the resources have, unless it is the only one. And it has to be cheap: what
// the first request spends here is lost for the neighbours that it will meet.
TimePoint StraitRecords::ReadyAt(const View& view, ModelId m, TimePoint now) const {
  TimePoint ready = order_.ReadyAt(view, m);
  if (ready <= now) return ready;
  const RequestQueue& queue = view.queues[m.value()];
  const int largest = LargestBatch(view, m);
  const int batch = queue.Batchable(largest);
  const ExitId exit = FinalExit(view.profile, m);
  for (const Lane& lane : view.lanes) {
    if (!lane.HasFreeSlot() || !lane.serves.contains(m)) continue;
    const Throughput& own = view.profile.Use(m, exit, batch, lane.lane_class).throughput;
    const bool last =
        !lane.batches.empty() && static_cast<int>(lane.batches.size()) + 1 >= lane.slots;
    if (!last && Peak(devices_[lane.id.value()].total() + own) <= options_.room) return now;
    const Duration full = view.profile.Latency(m, exit, largest, lane.lane_class);
    ready = std::min(ready, queue.front().deadline - Stretch(full, options_.slack));
  }
  return ready;
}

std::optional<Dispatch> StraitRecords::Feed(const View& view, TimePoint now, TimePoint& wake) {
  TrackHunger(view, now);
  ModelId hungriest;
  const Lane* emptiest = nullptr;
  for (std::size_t m = 0; m < hungry_.size() && m < view.queues.size(); ++m) {
    if (view.queues[m].empty()) continue;
    const TimePoint starves = hungry_[m] + options_.starve;
    if (starves > now) {
      wake = std::min(wake, starves);
      continue;
    }
    if (hungriest.valid() && hungry_[m] >= hungry_[hungriest.value()]) continue;
    const ModelId id{static_cast<ModelId::rep>(m)};
    const Lane* lane = EmptiestFor(view, id);
    if (lane == nullptr) continue;
    hungriest = id;
    emptiest = lane;
  }
  if (emptiest == nullptr) return std::nullopt;
  return Launch({.model = hungriest, .exit = FinalExit(view.profile, hungriest), .batch = 1},
                emptiest->id);
}

// With a free slot; null when there is none.
const Lane* StraitRecords::EmptiestFor(const View& view, ModelId m) {
  const Lane* emptiest = nullptr;
  for (const Lane& lane : view.lanes) {
    if (!lane.HasFreeSlot() || !lane.serves.contains(m)) continue;
    if (emptiest == nullptr || lane.batches.size() < emptiest->batches.size()) emptiest = &lane;
  }
  return emptiest;
}

Dispatch StraitRecords::Launch(const StraitCandidate& candidate, LaneId lane) {
  return departures_.Answer(Dispatch{candidate.model, candidate.exit, candidate.batch, lane});
}

// A queue is hungry from its first request on that is neither served nor gone for good. One that
// has lost requests and is empty may be hungry for the next; for as long as `starve`, not for ever.
void StraitRecords::TrackHunger(const View& view, TimePoint now) {
  for (std::size_t m = 0; m < view.queues.size(); ++m) {
    const bool forgotten = empty_[m] != kNever && now - empty_[m] >= options_.starve;
    const bool content = view.queues[m].empty() && !dropped_[m];
    if (content || forgotten || hungry_[m] == kNever) hungry_[m] = now;
    if (!view.queues[m].empty()) {
      empty_[m] = kNever;
    } else if (empty_[m] == kNever) {
      empty_[m] = now;
    }
  }
}

bool StraitRecords::ExceedsCap(const DeviceRecord& device, const Throughput& own,
                               TimePoint now) const {
  Throughput low = own;
  bool others = false;
  for (const OngoingBatch& batch : device.running()) {
    if (batch.level == 0) continue;
    low = low + batch.own;
    others = true;
  }
  return others && Peak(low) > throttle_.Cap(now);
}

StraitRecords::Remaining StraitRecords::Left(const DeviceRecord& device, const OngoingBatch& batch,
                                             TimePoint now) const {
  const Duration passed = std::max(now - batch.uploaded, Duration{});
  const double degree = interference_.Degree({device.MeanMet(batch, now), batch.own, batch.level});
  const auto left = [&](double slowed) {
    return std::max(batch.kernel - Stretch(passed, 1 / slowed), Duration{});
  };
  return {left(degree), left(tail_.Of(degree))};
}

TimePoint StraitRecords::EndOf(const DeviceRecord& device, const OngoingBatch& batch,
                               const Remaining& left, const Throughput& added, TimePoint now,
                               Luck luck) const {
  const double degree =
      interference_.Degree({device.total() - batch.own + added, batch.own, batch.level});
  return std::max(now, batch.uploaded) + (luck == Luck::kBad
                                              ? Stretch(left.in_tail, tail_.Of(degree))
                                              : Stretch(left.expected, degree));
}

bool StraitRecords::Delays(const DeviceRecord& device, const OngoingBatch& batch,
                           const Remaining& left, const Throughput& added, int level,
                           TimePoint now) const {
  if (batch.level > level) return false;
  const Luck luck = batch.level < level ? Luck::kBad : Luck::kExpected;
  return EndOf(device, batch, left, added, now, luck) > batch.deadline;
}

// Eq. 1 without the time already waited, which the deadline knows.
Duration StraitRecords::Estimate(const View& view, const StraitCandidate& candidate,
                                 const Lane& lane, TimePoint now) const {
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

void StraitRecords::OnPopFront(ModelId m, int count) {
  dropped_[m.value()] = departures_.Leave(m, count, order_) != Departures::Kind::kLaunched;
}

OngoingBatch StraitRecords::Record(const RunningBatch& batch, const Lane& lane) const {
  const Duration alone = profile_->Latency(batch.model, batch.exit, batch.batch, lane.lane_class);
  const ResourceUse& use = profile_->Use(batch.model, batch.exit, batch.batch, lane.lane_class);
  return {.id = batch.id,
          .level = order_.LevelOf(batch.priority),
          .slo = slos_[batch.model.value()],
          .deadline = batch.deadline,
          .launched = batch.started,
          .kernel = alone - use.transfer,
          .own = use.throughput};
}

// A batch that is not in the record yet has just begun.
void StraitRecords::OnLaneChange(const Lane& lane) {
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

// As if each request's deadline were its model's SLO after its arrival.
void StraitRecords::CountErrors(const OngoingBatch& batch, double predicted, double actual,
                                const BatchReport& report) {
  errors_.kernel.Add((predicted - actual) / actual);
  errors_.overhead.Add(actual - 1);
  errors_.newest = {predicted, actual};
  const Duration waited = std::max(batch.launched - (batch.deadline - batch.slo), Duration{});
  const Duration ahead = waited + (batch.uploaded - batch.launched);
  const double whole = ToSeconds(waited + (report.ended - batch.launched));
  if (whole <= 0) return;
  errors_.latency.Add((ToSeconds(ahead + Stretch(batch.kernel, predicted)) - whole) / whole);
}

void StraitRecords::OnBatchDone(LaneId lane, const RunningBatch& batch, const BatchReport& report,
                                TimePoint now) {
  DeviceRecord& device = devices_[lane.value()];
  OngoingBatch done;
  // What failed or was stopped teaches nothing: neither the link, nor the cap, nor the predictor.
  const bool whole = report.status == BatchStatus::kOk;
  const auto uploaded = whole ? std::optional(report.started + report.upload) : std::nullopt;
  if (!device.Remove(batch.id, now, uploaded, done) || !whole) return;
  if (done.level == 0 && now > done.deadline) departures_.Miss();
  if (done.kernel <= Duration{}) return;
  const Exposure exposure{device.MeanMet(done, now), done.own, done.level};
  const Duration took = report.ended - report.started - report.upload;
  if (!(Peak(exposure.neighbours) > 0) || took <= Duration{}) return;
  const double actual = ToSeconds(took) / ToSeconds(done.kernel);
  const double predicted = interference_.Degree(exposure);
  CountErrors(done, predicted, actual, report);
  tail_.Learn(predicted, actual);
  interference_.Learn(exposure, actual);
}

}  // namespace tactus
