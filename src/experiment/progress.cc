#include "experiment/progress.h"

#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

namespace tactus {

Progress::Progress(std::size_t total, std::chrono::seconds between)
    : total_(total),
      terminal_(isatty(STDERR_FILENO) != 0),
      between_(between),
      start_(std::chrono::steady_clock::now()),
      next_line_(between) {}

Progress::~Progress() {
  if (terminal_) fmt::print(stderr, "\r\033[K");
}

void Progress::Show(std::size_t done, const std::string& what) {
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
  if (!first_) {  // what an earlier run left done says nothing of how fast this one is
    first_ = done;
    since_ = spent;
  }
  if (!terminal_ && spent < next_line_) return;
  std::string left;
  if (done > *first_) {
    const double each = (spent - since_).count() / static_cast<double>(done - *first_);
    const double seconds = each * static_cast<double>(total_ - done);
    left = fmt::format(", about {:.0f} s left", seconds);
  }
  if (!terminal_) {
    fmt::print(stderr, "{}/{}{}  {}\n", done, total_, left, what);
    next_line_ = spent + between_;
    return;
  }
  constexpr std::size_t kBar = 24;
  const std::size_t filled = kBar * done / total_;
  fmt::print(stderr, "\r\033[K[{}{}] {}/{}{}  {}", std::string(filled, '#'),
             std::string(kBar - filled, '.'), done, total_, left, what);
  std::fflush(stderr);
}

}  // namespace tactus
