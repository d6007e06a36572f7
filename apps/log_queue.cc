#include "log_queue.h"

#include <vector>

#include <unistd.h>

#include "patient_sink.h"
#include "server/kserve/log_settings.h"

namespace tactus {
namespace {

namespace level = spdlog::level;

LogChoice ChoiceOf(const std::string& name) {
  const level::level_enum least = level::from_str(name);
  return {.info = least <= level::info,
          .warning = least <= level::warn,
          .error = least <= level::err,
          .verbose_level = least <= level::debug ? 1u : 0u};
}

void Apply(const LogChoice& choice, PatientSink& sink, spdlog::logger& log) {
  std::vector<level::level_enum> shown;
  if (choice.verbose_level > 0) shown.insert(shown.end(), {level::trace, level::debug});
  if (choice.info) shown.push_back(level::info);
  if (choice.warning) shown.push_back(level::warn);
  if (choice.error) shown.insert(shown.end(), {level::err, level::critical});
  sink.Show(shown);
  sink.set_pattern(choice.form == LogChoice::Form::kDefault ? "%L%m%d %H:%M:%S.%f %v"
                                                            : "%Y-%m-%dT%H:%M:%S.%e %l %v");
  log.set_level(shown.empty() ? level::off : shown.front());
}

}  // namespace

LogQueue::LogQueue(const std::string& least)
    : pool_(std::make_shared<spdlog::details::thread_pool>(8192, 1)),
      sink_(std::make_shared<PatientSink>(STDERR_FILENO)),
      log_(std::make_shared<spdlog::async_logger>("tactus", sink_, pool_,
                                                  spdlog::async_overflow_policy::overrun_oldest)) {
  const LogChoice first = ChoiceOf(least);
  Apply(first, *sink_, *log_);
  settings_ = std::make_shared<LogSettings>(
      first, [sink = sink_, log = log_](const LogChoice& choice) { Apply(choice, *sink, *log); });
  log_->flush_on(level::info);
}

}  // namespace tactus
