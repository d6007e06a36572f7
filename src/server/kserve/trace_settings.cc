#include "server/kserve/trace_settings.h"

#include <charconv>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace tactus {
namespace {

constexpr std::string_view kOff = "OFF";
constexpr std::string_view kTimestamps = "TIMESTAMPS";
constexpr std::string_view kTensors = "TENSORS";

std::unexpected<Error> NotAllowed(const std::string& name, std::string_view allowed) {
  return InvalidArgument(fmt::format("trace setting '{}' must be {}", name, allowed));
}

template <class T>
Status TakeNumber(const std::string& name, const std::vector<std::string>& values, T least,
                  std::optional<T>& setting) {
  T number{};
  bool whole = values.size() == 1;
  if (whole) {
    const std::string& text = values.front();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    whole = error == std::errc{} && end == text.data() + text.size() && number >= least;
  }
  if (!whole) {
    return NotAllowed(
        name, fmt::format("one whole number from {} to {}", least, std::numeric_limits<T>::max()));
  }
  setting = number;
  return {};
}

}  // namespace

TraceSettings::TraceSettings(std::string to, Mode mode)
    : to_(std::move(to)), mode_(mode), on_(AnyOn()) {}

std::string TraceSettings::ModeName() const {
  return mode_ == Mode::kTriton ? "triton" : "opentelemetry";
}

std::string TraceSettings::File() const { return mode_ == Mode::kTriton ? to_ : ""; }

TraceSettings::Scope TraceSettings::Defaults() const {
  return {
      .timestamps = mode_ == Mode::kOpenTelemetry, .rate = 1000, .count = -1, .log_frequency = 0};
}

TraceValues TraceSettings::Get(const std::string& model) const {
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(model);
  const Scope own = found == models_.end() ? Scope() : found->second;
  const auto text = [&](const auto setting) {
    const auto& value = own.*setting ? own.*setting : global_.*setting;
    return std::vector{std::to_string(*value)};
  };
  const bool on = own.timestamps.value_or(*global_.timestamps);
  return {{"log_frequency", text(&Scope::log_frequency)},
          {"trace_count", text(&Scope::count)},
          {"trace_file", {File()}},
          {"trace_level", {std::string(on ? kTimestamps : kOff)}},
          {"trace_mode", {ModeName()}},
          {"trace_rate", text(&Scope::rate)}};
}

Status TraceSettings::TakeLevel(const std::vector<std::string>& values, Scope& scope) const {
  scope.timestamps.reset();
  for (const std::string& level : values) {
    if (level == kTensors) {
      return Fail(ErrorCode::kUnimplemented,
                  "trace setting 'trace_level': TENSORS is not supported: the server traces times, "
                  "not what tensors hold; use TIMESTAMPS");
    }
    const bool on = level == kTimestamps;
    if ((!on && level != kOff) || scope.timestamps.value_or(on) != on) {
      return NotAllowed("trace_level", "[\"OFF\"] or [\"TIMESTAMPS\"]");
    }
    scope.timestamps = on;
  }
  if (scope.timestamps.value_or(false) && to_.empty()) {
    return InvalidArgument(
        "trace setting 'trace_level': there is nowhere for the traces to go; start the "
        "server with --trace-file FILE or --otlp URL");
  }
  return {};
}

// None of the values: the scope is as one level above again.
Status TraceSettings::Take(const std::string& name, const std::vector<std::string>& values,
                           Scope& scope) const {
  if (name == "trace_level") return TakeLevel(values, scope);
  if (name == "trace_rate") {
    scope.calls = 0;
    scope.rate.reset();
    return values.empty() ? Status() : TakeNumber(name, values, std::uint32_t{1}, scope.rate);
  }
  if (name == "trace_count") {
    scope.count.reset();
    return values.empty() ? Status() : TakeNumber(name, values, std::int64_t{-1}, scope.count);
  }
  if (name == "log_frequency") {
    scope.log_frequency.reset();
    return values.empty() ? Status()
                          : TakeNumber(name, values, std::uint32_t{0}, scope.log_frequency);
  }
  const bool same =
      values.empty() || values == std::vector{name == "trace_file" ? File() : ModeName()};
  if (name == "trace_file") {
    if (same) return {};
    return Fail(ErrorCode::kUnimplemented,
                "trace setting 'trace_file' cannot be changed: traces go where the server was told "
                "at its start, with --trace-file FILE");
  }
  if (name == "trace_mode") {
    if (same) return {};
    return Fail(ErrorCode::kUnimplemented,
                fmt::format("trace setting 'trace_mode' can only be \"{}\", as the server was "
                            "started: with --trace-file it is \"triton\", with --otlp "
                            "\"opentelemetry\"",
                            ModeName()));
  }
  return InvalidArgument(
      fmt::format("there is no trace setting '{}'; known: log_frequency, trace_count, trace_file, "
                  "trace_level, trace_mode, trace_rate",
                  name));
}

Status TraceSettings::Set(const std::string& model, const TraceValues& values) {
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(model);
  Scope next = model.empty() ? global_ : found == models_.end() ? Scope() : found->second;
  for (const auto& [name, value] : values) {
    if (Status taken = Take(name, value, next); !taken) return taken;
  }
  if (model.empty()) {
    const Scope defaults = Defaults();
    const auto fill = [&](const auto setting) {
      if (!(next.*setting)) next.*setting = defaults.*setting;
    };
    fill(&Scope::timestamps);
    fill(&Scope::rate);
    fill(&Scope::count);
    fill(&Scope::log_frequency);
    global_ = next;
  } else if (next.timestamps || next.rate || next.count || next.log_frequency) {
    models_.insert_or_assign(model, next);
  } else {
    models_.erase(model);
  }
  on_.store(AnyOn(), std::memory_order_relaxed);
  return {};
}

bool TraceSettings::AnyOn() const {
  const auto on = [&](const Scope& scope) {
    return scope.timestamps.value_or(*global_.timestamps) &&
           scope.count.value_or(*global_.count) != 0;
  };
  if (on(global_)) return true;
  for (const auto& [name, scope] : models_) {
    if (on(scope)) return true;
  }
  return false;
}

std::optional<TraceSample> TraceSettings::Sample(std::string_view model,
                                                 const std::optional<TraceParent>& parent) {
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(model);
  Scope* const own = found == models_.end() ? nullptr : &found->second;
  if (!*Owner(own, &Scope::timestamps).timestamps) return std::nullopt;
  std::int64_t& left = *Owner(own, &Scope::count).count;
  if (left == 0) return std::nullopt;
  if (parent && mode_ == Mode::kOpenTelemetry) {
    if (!parent->sampled) return std::nullopt;
  } else {
    Scope& rated = Owner(own, &Scope::rate);
    if (++rated.calls % *rated.rate != 0) return std::nullopt;
  }
  if (left > 0 && --left == 0) on_.store(AnyOn(), std::memory_order_relaxed);
  return TraceSample{++sampled_, *Owner(own, &Scope::log_frequency).log_frequency};
}

}  // namespace tactus
