// Lines for a pipe or a terminal that may not be read: whoever writes there as usual waits for
// ever, and the process that wants to end with it.
#pragma once

#include <atomic>
#include <mutex>
#include <string_view>
#include <vector>

#include <spdlog/sinks/base_sink.h>

#include "base/serving_time.h"

namespace tactus {

// Writes to a pipe, a terminal or a file. False: nobody made room for all of it in time.
bool WritePatiently(int descriptor, std::string_view text, Duration patience);
// On standard output; lost where nobody reads it, so that a server serves and stops all the same.
// What comes after a loss does not wait for room.
void SayPatiently(std::string_view text);

class PatientSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // How long a line waits for room at first; the lines after one that was lost do not wait.
  static constexpr Duration kPatience = Seconds(1);

  explicit PatientSink(int descriptor) : descriptor_(descriptor) {}

  // From now on only lines of these levels are written. At first: all.
  void Show(const std::vector<spdlog::level::level_enum>& levels);

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

 private:
  // False: there was no room for all of it.
  bool Write(std::string_view text);

  const int descriptor_;
  std::atomic<unsigned> shown_ = ~0u;  // a bit for each level
  bool blocked_ = false;               // there was no room for the last line
  unsigned long lost_ = 0;
};

}  // namespace tactus
