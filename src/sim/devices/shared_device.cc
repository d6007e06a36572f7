#include "sim/devices/shared_device.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/check.h"

namespace tactus {

void SharedDevice::Begin(int slot, TimePoint now, TimePoint at, const SharedWork& work) {
  Place& place = places_[slot];
  CHECK(place.state == State::kFree, "a slot runs one batch at a time");
  CHECK(at >= now && now <= next(), "a device is advanced before it is given more");
  place.work = work;
  place.uploaded = link_free_ = std::max(at, link_free_) + work.transfer;
  place.end = kNever;
  place.state = State::kUploading;
  if (place.uploaded > now) return;
  Settle(now);
  Join(place);
  Retime(now);
}

void SharedDevice::Stop(int slot, TimePoint now) {
  Place& place = places_[slot];
  CHECK(place.state != State::kFree, "nothing runs there");
  Settle(now);
  place.state = State::kFree;
  Retime(now);
}

TimePoint SharedDevice::next() const {
  TimePoint next = kNever;
  for (const Place& place : places_) {
    if (place.state == State::kUploading) next = std::min(next, place.uploaded);
    if (place.state == State::kRunning) next = std::min(next, place.end);
  }
  return next;
}

int SharedDevice::Advance(TimePoint now) {
  CHECK(now <= next(), "nothing may be passed over");
  bool changed = false;
  for (Place& place : places_) {
    if (place.state != State::kUploading || place.uploaded > now) continue;
    if (!changed) Settle(now);
    changed = true;
    Join(place);
  }
  if (changed) Retime(now);
  for (std::size_t slot = 0; slot < places_.size(); ++slot) {
    if (places_[slot].state != State::kRunning || places_[slot].end > now) continue;
    Stop(static_cast<int>(slot), now);
    return static_cast<int>(slot);
  }
  return kNone;
}

void SharedDevice::Join(Place& place) {
  place.left_ns = static_cast<double>(place.work.kernel.count());
  const int highest = HighestRunning();
  place.state = State::kRunning;
  if (options_.suspends && highest != std::numeric_limits<int>::max() &&
      place.work.priority < highest) {
    place.left_ns += static_cast<double>(options_.preemption.count());
  }
}

int SharedDevice::HighestRunning() const {
  int highest = std::numeric_limits<int>::max();
  for (const Place& place : places_) {
    if (place.state == State::kRunning) highest = std::min(highest, place.work.priority);
  }
  return highest;
}

// Books the work done since the last change.
void SharedDevice::Settle(TimePoint now) {
  const double passed = static_cast<double>((now - settled_).count());
  settled_ = now;
  for (Place& place : places_) {
    if (place.state != State::kRunning || place.end == kNever) continue;
    place.left_ns = std::max(0.0, place.left_ns - passed / place.slowdown);
  }
}

// An end is rounded up: a batch is never done early. One that would take longer than a lifetime
// takes that (73 years), which no time overflows: what gets next to nothing of a device ends late,
// not at once.
Duration SharedDevice::Rest(const Place& place) {
  constexpr double kMost = 0x1p61;
  return Nanos(std::llround(std::min(std::ceil(place.left_ns * place.slowdown), kMost)));
}

// Those that run have changed.
void SharedDevice::Retime(TimePoint now) {
  const int highest = HighestRunning();
  const auto runs = [&](const Place& place) {
    return place.state == State::kRunning && (!options_.suspends || place.work.priority == highest);
  };
  std::size_t count = 0;
  for (const Place& place : places_) {
    if (runs(place)) contenders_[count++] = place.work.contender;
  }
  Slowdowns(options_.contention, std::span(contenders_).first(count),
            std::span(slowdown_).first(count));
  count = 0;
  for (Place& place : places_) {
    if (!runs(place)) {
      place.end = kNever;
      continue;
    }
    place.slowdown = slowdown_[count++];
    place.end = now + Rest(place);
  }
}

}  // namespace tactus
