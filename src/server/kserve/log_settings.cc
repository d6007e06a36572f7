#include "server/kserve/log_settings.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tactus {
namespace {

constexpr std::array<std::string_view, 3> kForms = {"default", "ISO8601", "JSON"};  // by Form

Status TakeFormat(const LogValue& value, LogChoice::Form& form) {
  const auto* const text = std::get_if<std::string>(&value);
  const auto* const known = text == nullptr ? kForms.end() : std::ranges::find(kForms, *text);
  if (known == kForms.end()) {
    return InvalidArgument(
        fmt::format("log setting 'log_format' must be one of {}", fmt::join(kForms, ", ")));
  }
  form = static_cast<LogChoice::Form>(known - kForms.begin());
  return {};
}

Status Take(const std::string& name, const LogValue& value, LogChoice& choice) {
  bool* const flag = name == "log_info"      ? &choice.info
                     : name == "log_warning" ? &choice.warning
                     : name == "log_error"   ? &choice.error
                                             : nullptr;
  if (flag != nullptr) {
    const bool* const given = std::get_if<bool>(&value);
    if (given == nullptr) {
      return InvalidArgument(fmt::format("log setting '{}' must be true or false", name));
    }
    *flag = *given;
    return {};
  }
  if (name == "log_verbose_level") {
    const auto* const level = std::get_if<std::uint32_t>(&value);
    if (level == nullptr) {
      return InvalidArgument("log setting 'log_verbose_level' must be a whole number from 0 on");
    }
    choice.verbose_level = *level;
    return {};
  }
  if (name == "log_format") return TakeFormat(value, choice.form);
  if (name == "log_file") {
    return Fail(
        ErrorCode::kUnimplemented,
        "log setting 'log_file' cannot be changed: the server logs to standard error, which "
        "whoever starts it may direct to a file");
  }
  return InvalidArgument(
      fmt::format("there is no log setting '{}'; known: log_error, log_format, log_info, "
                  "log_verbose_level, log_warning",
                  name));
}

}  // namespace

LogSettings::LogSettings(LogChoice first, std::function<void(const LogChoice&)> apply)
    : choice_(first), apply_(std::move(apply)) {}

LogValues LogSettings::Get() const {
  const std::lock_guard lock(mutex_);
  return {{"log_error", choice_.error},
          {"log_file", std::string()},
          {"log_format", std::string(kForms[static_cast<std::size_t>(choice_.form)])},
          {"log_info", choice_.info},
          {"log_verbose_level", choice_.verbose_level},
          {"log_warning", choice_.warning}};
}

Status LogSettings::Set(const LogValues& values) {
  const std::lock_guard lock(mutex_);
  LogChoice next = choice_;
  for (const auto& [name, value] : values) {
    if (Status taken = Take(name, value, next); !taken) return taken;
  }
  if (next == choice_) return {};
  choice_ = next;
  apply_(next);
  return {};
}

}  // namespace tactus
