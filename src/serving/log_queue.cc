#include "serving/log_queue.h"

#include <chrono>
#include <string_view>
#include <vector>

#include <fmt/chrono.h>
#include <nlohmann/json.hpp>
#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/formatter.h>
#include <unistd.h>

#include "server/kserve/log_settings.h"
#include "serving/patient_sink.h"

namespace tactus {
namespace {

namespace level = spdlog::level;

class JsonLines final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto view = [](const auto& text) { return std::string_view(text.data(), text.size()); };
    const auto time = std::chrono::floor<std::chrono::milliseconds>(message.time);
    const nlohmann::ordered_json line{
        {"time", fmt::format("{:%FT%T}.{:03}Z", fmt::gmtime(message.time),
                             time.time_since_epoch().count() % 1000)},
        {"level", view(level::to_string_view(message.level))},
        {"message", view(message.payload)}};
    // A client's own words may be no UTF-8.
    const std::string text =
        line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<formatter> clone() const override { return std::make_unique<JsonLines>(); }
};

LogChoice ChoiceOf(const std::string& name, const std::string& format) {
  const level::level_enum least = level::from_str(name);
  return {.info = least <= level::info,
          .warning = least <= level::warn,
          .error = least <= level::err,
          .verbose_level = least <= level::debug ? 1u : 0u,
          .form = format == "json" ? LogChoice::Form::kJson : LogChoice::Form::kIso8601};
}

void Apply(const LogChoice& choice, PatientSink& sink, spdlog::logger& log) {
  std::vector<level::level_enum> shown;
  if (choice.verbose_level > 0) shown.insert(shown.end(), {level::trace, level::debug});
  if (choice.info) shown.push_back(level::info);
  if (choice.warning) shown.push_back(level::warn);
  if (choice.error) shown.insert(shown.end(), {level::err, level::critical});
  sink.Show(shown);
  if (choice.form == LogChoice::Form::kJson) {
    sink.set_formatter(std::make_unique<JsonLines>());
  } else {
    sink.set_pattern(choice.form == LogChoice::Form::kDefault ? "%L%m%d %H:%M:%S.%f %v"
                                                              : "%Y-%m-%dT%H:%M:%S.%e %l %v");
  }
  log.set_level(shown.empty() ? level::off : shown.front());
}

}  // namespace

LogQueue::LogQueue(const std::string& least, const std::string& format)
    : pool_(std::make_shared<spdlog::details::thread_pool>(8192, 1)),
      sink_(std::make_shared<PatientSink>(STDERR_FILENO)),
      log_(std::make_shared<spdlog::async_logger>("tactus", sink_, pool_,
                                                  spdlog::async_overflow_policy::overrun_oldest)) {
  const LogChoice first = ChoiceOf(least, format);
  Apply(first, *sink_, *log_);
  settings_ = std::make_shared<LogSettings>(
      first, [sink = sink_, log = log_](const LogChoice& choice) { Apply(choice, *sink, *log); });
  log_->flush_on(level::info);
}

}  // namespace tactus
