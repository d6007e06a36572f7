#include "sim/fleet/accelerator.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tactus {
namespace {

constexpr double kRounding = 0.5;  // ns: ends are rounded up

}  // namespace

void Accelerator::Begin(std::uint32_t batch, TimePoint now, Duration alone, double use) {
  Settle(now);
  const double asks = std::min(use, 1.0);
  jobs_.push_back({work_ + static_cast<double>(alone.count()), begun_++, batch, asks});
  std::push_heap(jobs_.begin(), jobs_.end(), After);
  asked_ += asks;
  Retime();
}

std::uint32_t Accelerator::TakeEnded(TimePoint now) {
  if (next_ > now) return kNone;
  Settle(now);
  const Job ended = jobs_.front();
  std::pop_heap(jobs_.begin(), jobs_.end(), After);
  jobs_.pop_back();
  Leave(ended.use);
  return ended.batch;
}

void Accelerator::Stop(std::uint32_t batch, TimePoint now) {
  Settle(now);
  const auto found = std::ranges::find(jobs_, batch, &Job::batch);
  CHECK(found != jobs_.end(), "only what runs can be stopped");
  const double use = found->use;
  jobs_.erase(found);
  std::make_heap(jobs_.begin(), jobs_.end(), After);
  Leave(use);
}

Duration Accelerator::busy(TimePoint now) const {
  return jobs_.empty() ? busy_ : busy_ + (now - settled_);
}

void Accelerator::Leave(double use) {
  asked_ -= use;
  if (jobs_.empty()) work_ = asked_ = 0;  // rounding does not add up
  Retime();
}

void Accelerator::Settle(TimePoint now) {
  if (!jobs_.empty()) {
    work_ += static_cast<double>((now - settled_).count()) / slowdown_;
    busy_ += now - settled_;
  }
  settled_ = now;
}

void Accelerator::Retime() {
  if (jobs_.empty()) {
    next_ = kNever;
    return;
  }
  const auto neighbours = static_cast<double>(jobs_.size() - 1);
  slowdown_ = 1 + crosstalk_ * neighbours + std::max(0.0, asked_ - 1);
  const double left = (jobs_.front().ends - work_) * slowdown_;
  next_ = settled_ + Nanos(std::llround(std::max(0.0, std::ceil(left - kRounding))));
}

}  // namespace tactus
