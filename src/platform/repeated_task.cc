#include "platform/repeated_task.h"

#include <utility>

#include "platform/cpu_affinity.h"

namespace tactus {
namespace {

constexpr Duration kYear = Seconds(365 * 86'400);

}  // namespace

bool SleepUnlessStopped(Duration time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

void RepeatedTask::Start(std::string name, Run run, Duration first) {
  thread_ = std::jthread([this, name = std::move(name), run = std::move(run),
                          pause = first](const std::stop_token& stop) mutable {
    NameThisThread(name);
    const auto woken = [this] { return woken_; };
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        if (pause > kYear) {  // now + pause may overflow
          changed_.wait(lock, stop, woken);
        } else {
          changed_.wait_for(lock, stop, pause, woken);
        }
        woken_ = false;
      }
      if (stop.stop_requested()) return;
      pause = run();
    }
  });
}

void RepeatedTask::Wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

void RepeatedTask::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

RepeatedTask::Run Every(Duration period, std::move_only_function<void()> run) {
  return [period, run = std::move(run)]() mutable {
    run();
    return period;
  };
}

}  // namespace tactus
