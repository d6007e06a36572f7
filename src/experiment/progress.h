// A line on stderr that says how far a long command is and how long it will still take: drawn anew
// on a terminal; elsewhere, such as in a log, one more line now and then.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace tactus {

class Progress {
 public:
  // `between`: from the start to the first line, and between lines, where there is no terminal.
  explicit Progress(std::size_t total, std::chrono::seconds between = std::chrono::seconds(30));
  ~Progress();  // wipes the line

  // Before step `done` (from 0) of the total.
  void Show(std::size_t done, const std::string& what);

 private:
  const std::size_t total_;
  const bool terminal_;
  const std::chrono::seconds between_;
  const std::chrono::steady_clock::time_point start_;
  std::chrono::duration<double> next_line_;  // after start_, where stderr is no terminal
  std::optional<std::size_t> first_;         // what was done at the first Show
  std::chrono::duration<double> since_{};    // and when that was, after start_
};

}  // namespace tactus
