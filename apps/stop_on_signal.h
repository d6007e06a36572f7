// Ctrl-C and SIGTERM for `tactus load`.
#pragma once

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <stop_token>
#include <thread>

namespace tactus {

// Ctrl-C and SIGTERM end the sending; the report of what was sent follows when the answers are
// there. A second one ends everything. The signals are blocked in every thread and taken by one of
// our own, so no handler needs a global.
class StopOnSignal {
 public:
  StopOnSignal() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGINT);
    sigaddset(&set_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    thread_ = std::jthread([this](const std::stop_token& ending) {
      const timespec briefly{0, 100'000'000};
      while (!ending.stop_requested()) {
        if (sigtimedwait(&set_, nullptr, &briefly) <= 0) continue;
        if (!source_.request_stop()) std::_Exit(130);
      }
    });
  }
  std::stop_token token() const { return source_.get_token(); }

 private:
  sigset_t set_{};
  std::stop_source source_;
  std::jthread thread_;
};

}  // namespace tactus
