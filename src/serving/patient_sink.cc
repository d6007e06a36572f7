#include "serving/patient_sink.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <string>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

namespace tactus {

void PatientSink::Show(const std::vector<spdlog::level::level_enum>& levels) {
  unsigned shown = 0;
  for (const auto level : levels) shown |= 1u << level;
  shown_ = shown;
}

void PatientSink::sink_it_(const spdlog::details::log_msg& message) {
  if ((shown_ & 1u << message.level) == 0) return;
  const auto write = [this](const spdlog::details::log_msg& each) {
    spdlog::memory_buf_t line;
    formatter_->format(each, line);
    return Write({line.data(), line.size()});
  };
  if (lost_ > 0) {
    const std::string gap = fmt::format(
        "{} lines were lost, because nobody read them, or there was no room for them", lost_);
    if (!write({message.time, {}, message.logger_name, spdlog::level::warn, gap})) {
      ++lost_;
      return;
    }
    lost_ = 0;
  }
  if (!write(message)) ++lost_;
}

bool PatientSink::Write(std::string_view text) {
  const bool written = WritePatiently(descriptor_, text, blocked_ ? Duration{} : kPatience);
  blocked_ = !written;
  return written;
}

// A pipe that polls writable takes PIPE_BUF bytes at least without blocking.
bool WritePatiently(int descriptor, std::string_view text, Duration patience) {
  while (!text.empty()) {
    pollfd place{.fd = descriptor, .events = POLLOUT, .revents = 0};
    const int ready = poll(&place, 1, static_cast<int>(ToMillis(patience)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return false;
    const auto written =
        write(descriptor, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (written < 0 && errno == EINTR) continue;
    // A file may find room again; where nobody will ever read it, nothing is lost.
    if (written < 0) return errno != ENOSPC && errno != EDQUOT && errno != EFBIG;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void SayPatiently(std::string_view text) {
  static std::atomic<bool> blocked = false;
  const Duration patience = blocked ? Duration{} : PatientSink::kPatience / 4;
  blocked = !WritePatiently(STDOUT_FILENO, text, patience);
}

}  // namespace tactus
