// What a server tells people, on standard error.
#pragma once

#include <memory>
#include <string>

#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <unistd.h>

#include "patient_sink.h"

namespace tactus {

using Log = std::shared_ptr<spdlog::logger>;

// Lines go through a queue to a thread of their own; when it is full the oldest are lost, so that
// no request ever waits for a terminal. Nor does the end of the process (patient_sink.h).
class LogQueue {
 public:
  explicit LogQueue(const std::string& level)
      : pool_(std::make_shared<spdlog::details::thread_pool>(8192, 1)),
        log_(std::make_shared<spdlog::async_logger>(
            "tactus", std::make_shared<PatientSink>(STDERR_FILENO), pool_,
            spdlog::async_overflow_policy::overrun_oldest)) {
    log_->set_level(spdlog::level::from_str(level));
    log_->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
    log_->flush_on(spdlog::level::info);
  }
  const Log& log() const { return log_; }

 private:
  std::shared_ptr<spdlog::details::thread_pool> pool_;
  Log log_;
};

}  // namespace tactus
