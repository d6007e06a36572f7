#include "stop_signals.h"

#include <cstdlib>

#include "base/error_line.h"

namespace tactus {

StopSignals::StopSignals() {
  sigemptyset(&set_);
  sigaddset(&set_, SIGTERM);
  sigaddset(&set_, SIGINT);
  sigaddset(&set_, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  signal(SIGPIPE, SIG_IGN);  // a client that left is an error of its connection only
  signal(SIGXFSZ, SIG_IGN);  // and a file that may not grow, of what writes it
}

std::jthread StopSignals::EndAtOnce() const {
  return std::jthread([set = set_](const std::stop_token& started) {
    const timespec briefly{0, 50'000'000};
    while (!started.stop_requested()) {
      const int received = sigtimedwait(&set, nullptr, &briefly);
      if (received <= 0) continue;
      PrintError("stopped while it started; it had served nothing");
      std::_Exit(128 + received);
    }
  });
}

const char* StopSignals::Wait(const std::function<void()>& on_hangup, Second second) {
  int received = SIGHUP;
  while (received == SIGHUP) {
    sigwait(&set_, &received);
    if (received == SIGHUP) on_hangup();
  }
  if (second == Second::kEndsAtOnce) pthread_sigmask(SIG_UNBLOCK, &set_, nullptr);
  return received == SIGINT ? "SIGINT" : "SIGTERM";
}

bool StopSignals::CameWithin(std::chrono::milliseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  const std::chrono::nanoseconds rest = time - seconds;
  const timespec wait{seconds.count(), rest.count()};
  const int received = sigtimedwait(&set_, nullptr, &wait);
  return received == SIGINT || received == SIGTERM;
}

}  // namespace tactus
