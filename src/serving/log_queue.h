// What a server tells people, on standard error.
#pragma once

#include <memory>
#include <string>

namespace spdlog {
class logger;
namespace details {
class thread_pool;
}
}  // namespace spdlog

namespace tactus {

class LogSettings;
class PatientSink;

using Log = std::shared_ptr<spdlog::logger>;

// Lines go through a queue to a thread of their own; when it is full the oldest are lost, so that
// no request ever waits for a terminal. Nor does the end of the process (patient_sink.h).
class LogQueue {
 public:
  // `level`: "debug", "info", "warning", "error" or "off". `format`: "text", or "json" for an
  // object a line with time (RFC 3339), level and message.
  explicit LogQueue(const std::string& level, const std::string& format = "text");
  const Log& log() const { return log_; }
  // What of it is written, and how.
  const std::shared_ptr<LogSettings>& settings() const { return settings_; }

 private:
  std::shared_ptr<spdlog::details::thread_pool> pool_;
  std::shared_ptr<PatientSink> sink_;
  Log log_;
  std::shared_ptr<LogSettings> settings_;
};

}  // namespace tactus
