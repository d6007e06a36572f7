// A line on stderr that says how far a long command is and how long it will still take. It is drawn
// only on a terminal, so that logs stay clean.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace tactus {

class Progress {
 public:
  explicit Progress(std::size_t total);
  ~Progress();  // wipes the line

  // Before step `done` (from 0) of the total.
  void Show(std::size_t done, const std::string& what);

 private:
  const std::size_t total_;
  const bool terminal_;
  const std::chrono::steady_clock::time_point start_;
};

}  // namespace tactus
