#include "engines/cuda/completion_thread.h"

#include <chrono>
#include <iterator>
#include <utility>

#include <sys/prctl.h>

namespace tactus {
namespace {

// Between two looks where nobody rings: only a lost device is found so.
constexpr std::chrono::milliseconds kLook{10};

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
  std::vector<Awaited> awaited;  // no lock is held while the driver is asked
  std::unique_lock lock(mutex_);
  for (;;) {
    awaited.insert(awaited.end(), std::make_move_iterator(added_.begin()),
                   std::make_move_iterator(added_.end()));
    added_.clear();
    rung_ = false;
    lock.unlock();
    std::erase_if(awaited, Look);
    lock.lock();
    if (rung_ || !added_.empty()) continue;
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
