#include "progress.h"

#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

namespace tactus {

Progress::Progress(std::size_t total)
    : total_(total),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (terminal_) fmt::print(stderr, "\r\033[K");
}

void Progress::Show(std::size_t done, const std::string& what) {
  if (!terminal_) return;
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
  std::string left;
  if (done > 0) {
    const double seconds =
        spent.count() / static_cast<double>(done) * static_cast<double>(total_ - done);
    left = fmt::format(", about {:.0f} s left", seconds);
  }
  constexpr std::size_t kBar = 24;
  const std::size_t filled = kBar * done / total_;
  fmt::print(stderr, "\r\033[K[{}{}] {}/{}{}  {}", std::string(filled, '#'),
             std::string(kBar - filled, '.'), done, total_, left, what);
  std::fflush(stderr);
}

}  // namespace tactus
