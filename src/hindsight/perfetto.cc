#include "hindsight/perfetto.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tactus {
namespace {

// Protobuf's wire format: a field is its number and kind, and a value.
void AddVarint(std::string& to, std::uint64_t value) {
  for (; value > 0x7f; value >>= 7) to += static_cast<char>((value & 0x7f) | 0x80);
  to += static_cast<char>(value);
}
void AddNumber(std::string& to, std::uint32_t field, std::uint64_t value) {
  AddVarint(to, std::uint64_t{field} << 3);
  AddVarint(to, value);
}
void AddFixed(std::string& to, std::uint32_t field, std::uint64_t value) {
  AddVarint(to, std::uint64_t{field} << 3 | 1);
  for (int i = 0; i < 8; ++i) to += static_cast<char>(value >> (8 * i));
}
void AddText(std::string& to, std::uint32_t field, std::string_view text) {
  AddVarint(to, std::uint64_t{field} << 3 | 2);
  AddVarint(to, text.size());
  to += text;
}

// Field numbers of Perfetto's messages.
namespace trace {
constexpr std::uint32_t kPacket = 1;
}
namespace packet {
constexpr std::uint32_t kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kTrackDescriptor = 60;
}
namespace track {
constexpr std::uint32_t kUuid = 1, kName = 2, kProcess = 3, kParent = 5, kCounter = 8;
}
namespace event {
constexpr std::uint32_t kAnnotation = 4, kType = 9, kTrack = 11, kName = 23, kCounterValue = 30,
                        kFlow = 47;
constexpr std::uint64_t kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4;
}  // namespace event
namespace annotation {
constexpr std::uint32_t kUint = 3, kName = 10;
}

constexpr std::uint64_t kProcessTrack = 1;

void AddPacket(std::string& bytes, std::uint32_t field, const std::string& message,
               TimePoint at = kStart) {
  std::string packet;
  AddNumber(packet, packet::kTimestamp,
            static_cast<std::uint64_t>(std::max<std::int64_t>((at - kStart).count(), 0)));
  AddNumber(packet, packet::kSequence, 1);
  AddText(packet, field, message);
  AddText(bytes, trace::kPacket, packet);
}

void AddTrack(std::string& bytes, std::uint64_t uuid, std::string_view name, bool counter = false) {
  std::string track;
  AddNumber(track, track::kUuid, uuid);
  AddText(track, track::kName, name);
  if (uuid == kProcessTrack) {
    std::string process;
    AddNumber(process, 1, 1);  // its id
    AddText(process, 6, name);
    AddText(track, track::kProcess, process);
  } else {
    AddNumber(track, track::kParent, kProcessTrack);
  }
  if (counter) AddText(track, track::kCounter, "");
  AddPacket(bytes, packet::kTrackDescriptor, track);
}

std::string EventOf(std::uint64_t type, std::uint64_t track, std::string_view name = "") {
  std::string event;
  AddNumber(event, event::kType, type);
  AddNumber(event, event::kTrack, track);
  if (!name.empty()) AddText(event, event::kName, name);
  return event;
}

void Annotate(std::string& event, std::string_view name, std::uint64_t value) {
  std::string annotation;
  AddText(annotation, annotation::kName, name);
  AddNumber(annotation, annotation::kUint, value);
  AddText(event, event::kAnnotation, annotation);
}

std::uint64_t Micros(Duration duration) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(duration.count(), 0) / 1000);
}

const char* WhyOf(DropReason reason) {
  switch (reason) {
    case DropReason::kQueueFull:
      return "refused: the queue is full";
    case DropReason::kExpired:
      return "expired";
    case DropReason::kShed:
      return "shed";
    case DropReason::kCancelled:
      return "cancelled";
    case DropReason::kUnloaded:
      return "its model was unloaded";
  }
  return "ended";
}

}  // namespace

PerfettoTrace::PerfettoTrace(const std::vector<LaneSpec>& lanes) {
  next_track_ = kProcessTrack + 1;
  AddTrack(bytes_, kProcessTrack, "tactus");
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    first_slot_.push_back(slot_tracks_.size());
    for (int slot = 0; slot < lanes[lane].slots; ++slot) {
      AddTrack(bytes_, next_track_,
               lanes[lane].slots == 1 ? fmt::format("lane {}", lane)
                                      : fmt::format("lane {}, slot {}", lane, slot));
      slot_tracks_.push_back(next_track_++);
    }
  }
  first_slot_.push_back(slot_tracks_.size());
  taken_.resize(slot_tracks_.size());
}

void PerfettoTrace::Configured(std::shared_ptr<const ServedModels> served) {
  served_ = std::move(served);
}

std::uint64_t PerfettoTrace::TrackOf(ModelId model) {
  const std::string& name = served_->models[model.value()].name;
  const auto [found, made] = model_tracks_.try_emplace(name, next_track_);
  if (made) AddTrack(bytes_, next_track_++, "requests to " + name);
  return found->second;
}

void PerfettoTrace::Arrived(ModelId model, const Request& request) {
  std::string event = EventOf(event::kInstant, TrackOf(model), "arrived");
  AddFixed(event, event::kFlow, request.id.value() + 1);
  Annotate(event, "request", request.id.value());
  if (request.deadline != kNever) {
    Annotate(event, "time_us", Micros(request.deadline - request.arrival));
  }
  AddPacket(bytes_, packet::kTrackEvent, event, request.arrival);
  Wait(model, request, true, request.arrival);
}

void PerfettoTrace::Wait(ModelId model, const Request& request, bool waits, TimePoint at) {
  const std::uint64_t id = request.id.value();
  const bool changes = waits ? waits_.insert(id).second : waits_.erase(id) > 0;
  if (changes) waiting_[{at, model.value()}] += waits ? 1 : -1;
}

void PerfettoTrace::Launched(const Batch& batch) {
  const Model& model = served_->models[batch.model.value()];
  const std::size_t exit = batch.exit.value();
  Running running{.decided = batch.start, .expected_end = batch.expected_end};
  running.name = model.exits.size() > 1 && exit < model.exits.size()
                     ? fmt::format("{}, exit {}, {} rows", model.name, model.exits[exit].name,
                                   batch.requests.size())
                     : fmt::format("{}, {} rows", model.name, batch.requests.size());
  const std::size_t end = first_slot_[batch.lane.value() + 1];
  running.slot = first_slot_[batch.lane.value()];
  while (running.slot + 1 < end && taken_[running.slot]) ++running.slot;
  taken_[running.slot] = true;
  running.model = batch.model;
  for (const Request& request : batch.requests) Wait(batch.model, request, false, batch.start);
  running.requests.assign(batch.requests.begin(), batch.requests.end());
  running_[batch.id.value()] = std::move(running);
}

void PerfettoTrace::Finished(BatchId id, const BatchReport& report) {
  const auto found = running_.find(id.value());
  if (found == running_.end()) return;
  const Running running = std::move(found->second);
  running_.erase(found);
  taken_[running.slot] = false;
  const std::uint64_t track = slot_tracks_[running.slot];
  std::string event = EventOf(event::kBegin, track, running.name);
  std::uint64_t late = 0;
  for (const Request& request : running.requests) {
    AddFixed(event, event::kFlow, request.id.value() + 1);
    late += report.ended > request.deadline ? 1 : 0;
    // Rows of a batch that was lost, or stopped for another, wait again.
    const bool again =
        report.status == BatchStatus::kLost || report.status == BatchStatus::kAborted;
    if (again) Wait(running.model, request, true, report.ended);
  }
  Annotate(event, "late_rows", late);
  Annotate(event, "expected_us", Micros(running.expected_end - running.decided));
  Annotate(event, "took_us", Micros(report.ended - report.started));
  AddPacket(bytes_, packet::kTrackEvent, event, report.started);
  AddPacket(bytes_, packet::kTrackEvent, EventOf(event::kEnd, track), report.ended);
}

void PerfettoTrace::GivenUp(ModelId model, const Request& request, DropReason reason,
                            TimePoint now) {
  Wait(model, request, false, now);
  std::string event = EventOf(event::kInstant, TrackOf(model), WhyOf(reason));
  AddFixed(event, event::kFlow, request.id.value() + 1);
  AddPacket(bytes_, packet::kTrackEvent, event, now);
}

std::string PerfettoTrace::Take() && {
  // What the journal has no end of is drawn open.
  for (const auto& [id, running] : running_) {
    AddPacket(bytes_, packet::kTrackEvent,
              EventOf(event::kBegin, slot_tracks_[running.slot], running.name), running.decided);
  }
  std::vector<int> waits(served_ == nullptr ? 0 : served_->models.size());
  counters_.resize(waits.size());
  for (const auto& [key, change] : waiting_) {
    const auto& [at, model] = key;
    if (model >= waits.size() || change == 0) continue;
    if (counters_[model] == 0) {
      counters_[model] = next_track_++;
      AddTrack(bytes_, counters_[model], served_->models[model].name + " waiting", true);
    }
    waits[model] += change;
    std::string event = EventOf(event::kCounter, counters_[model]);
    AddNumber(event, event::kCounterValue, static_cast<std::uint64_t>(std::max(waits[model], 0)));
    AddPacket(bytes_, packet::kTrackEvent, event, at);
  }
  return std::move(bytes_);
}

}  // namespace tactus
