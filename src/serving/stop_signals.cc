#include "serving/stop_signals.h"

#include <cstdlib>
#include <string_view>

#include <unistd.h>

#include "base/error_line.h"

namespace tactus {
namespace {

constexpr std::chrono::seconds kBeyondGrace{5};
constexpr std::string_view kNoEnd =
    "tactus: the stop has taken 5 s beyond its grace: something holds it, such as a library that "
    "does not return or a disk that does not answer; the process ends without it\n";

}  // namespace

StopSignals::StopSignals() {
  sigemptyset(&set_);
  sigaddset(&set_, SIGTERM);
  sigaddset(&set_, SIGINT);
  sigaddset(&set_, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  signal(SIGPIPE, SIG_IGN);  // a client that left is an error of its connection only
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

void StopSignals::EndWithin(std::chrono::milliseconds grace) {
  signal(SIGALRM, [](int) {
    (void)!write(STDERR_FILENO, kNoEnd.data(), kNoEnd.size());
    _exit(1);
  });
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(grace + kBeyondGrace);
  alarm(static_cast<unsigned>(seconds.count()));
}

bool StopSignals::CameWithin(std::chrono::milliseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  const std::chrono::nanoseconds rest = time - seconds;
  const timespec wait{seconds.count(), rest.count()};
  const int received = sigtimedwait(&set_, nullptr, &wait);
  return received == SIGINT || received == SIGTERM;
}

}  // namespace tactus
