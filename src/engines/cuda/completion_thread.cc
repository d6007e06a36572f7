#include "engines/cuda/completion_thread.h"

#include <chrono>
#include <iterator>
#include <utility>

#include <sys/prctl.h>

namespace tactus {
namespace {

// Between two looks where nobody rings: only a lost device is found so.
constexpr std::chrono::milliseconds kLook{10};

// For so long after something changed it does not sleep but looks again and again, where the host
// has a core to spare: to be woken costs some 100 us, a fifth of a short batch.
constexpr std::chrono::milliseconds kSpin{2};
constexpr std::chrono::microseconds kPause{2};  // the driver's locks are free for the lanes so long
constexpr unsigned kCoresToSpin = 4;

void Pause() {
  const auto end = std::chrono::steady_clock::now() + kPause;
  while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

}  // namespace

CompletionThread::CompletionThread() : thread_([this] { Run(); }) {}

CompletionThread::~CompletionThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void CompletionThread::Add(const Device& device, CUevent event,
                           std::function<void(Status)> finish) {
  Add({.device = &device, .event = event, .verdict = {}, .finish = std::move(finish)});
}

void CompletionThread::AddFailed(const Device& device, Error failed,
                                 std::function<void(Status)> finish) {
  Add({.device = &device,
       .event = nullptr,
       .verdict = std::unexpected(std::move(failed)),
       .finish = std::move(finish)});
}

void CompletionThread::Add(Awaited awaited) {
  {
    const std::lock_guard lock(mutex_);
    added_.push_back(std::move(awaited));
  }
  changed_.notify_one();
}

void CompletionThread::Ring(void* self) {
  auto& thread = *static_cast<CompletionThread*>(self);
  {
    const std::lock_guard lock(thread.mutex_);
    thread.rung_ = true;
  }
  thread.changed_.notify_one();
}

bool CompletionThread::Look(Awaited& awaited) {
  const Driver& driver = awaited.device->driver();
  Status verdict = awaited.device->Bind();
  if (!awaited.verdict) {
    verdict = awaited.verdict;
  } else if (verdict) {
    const CUresult code = driver.query_event.call(awaited.event);
    if (code == CUDA_ERROR_NOT_READY) return false;
    if (code != CUDA_SUCCESS) {
      verdict = std::unexpected(DriverError(driver, driver.query_event.name, code));
    }
  }
  awaited.finish(std::move(verdict));
  awaited.finish = nullptr;  // lets go of the model
  return true;
}

void CompletionThread::Run() {
  prctl(PR_SET_NAME, "cuda");
  const bool spins = std::thread::hardware_concurrency() >= kCoresToSpin;
  auto changed_at = std::chrono::steady_clock::now();
  std::vector<Awaited> awaited;  // no lock is held while the driver is asked
  std::unique_lock lock(mutex_);
  for (;;) {
    bool changed = !added_.empty();
    awaited.insert(awaited.end(), std::make_move_iterator(added_.begin()),
                   std::make_move_iterator(added_.end()));
    added_.clear();
    rung_ = false;
    lock.unlock();
    changed |= std::erase_if(awaited, Look) > 0;
    const auto now = std::chrono::steady_clock::now();
    if (changed) changed_at = now;
    const bool spin = spins && !awaited.empty() && now - changed_at < kSpin;
    if (spin) Pause();
    lock.lock();
    if (spin || rung_ || !added_.empty()) continue;
    if (stop_ && awaited.empty()) return;
    const auto woken = [this] { return rung_ || !added_.empty(); };
    if (awaited.empty()) {
      changed_.wait(lock, [&] { return stop_ || woken(); });
    } else {
      changed_.wait_for(lock, kLook, woken);
    }
  }
}

}  // namespace tactus
