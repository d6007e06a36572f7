#include "server/kserve/time_headers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

namespace tactus {
namespace {

constexpr std::string_view kGrpcTimeout = "grpc-timeout";

std::unexpected<Error> WrongHeader(std::string_view name, std::string_view why) {
  return InvalidArgument(fmt::format("{}: {}", name, why));
}

// "250", "-3" or "12.5"; infinity where the number is too long to hold.
std::optional<double> ReadNumber(std::string_view text) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    return text.starts_with('-') ? -HUGE_VAL : HUGE_VAL;
  }
  // "inf" and "nan" are numbers to from_chars.
  if (error != std::errc{} || !std::isfinite(number)) return std::nullopt;
  return number;
}

// The unit of gRPC's TimeoutUnit.
std::optional<Duration> UnitOf(char unit) {
  switch (unit) {
    case 'H':
      return Seconds(3600);
    case 'M':
      return Seconds(60);
    case 'S':
      return Seconds(1);
    case 'm':
      return Millis(1);
    case 'u':
      return Micros(1);
    case 'n':
      return Nanos(1);
    default:
      return std::nullopt;
  }
}

// The nanoseconds of a limit; what is above 0 stays so.
Duration Clamped(double nanos) {
  const double longest = static_cast<double>(TimeLimit::kLongest.count());
  if (nanos > longest) return Duration::max();
  return nanos > 0 ? Nanos(std::max<std::int64_t>(1, std::llround(nanos))) : Duration{};
}

}  // namespace

Status ReadTimeHeader(std::string_view name, std::string_view value, TimeLimit& limit) {
  if (name == kGrpcTimeout) {
    const auto unit = value.empty() ? std::nullopt : UnitOf(value.back());
    const auto number = unit ? ReadNumber(value.substr(0, value.size() - 1)) : std::nullopt;
    if (!number) return WrongHeader(name, "not a number with one of the units H, M, S, m, u, n");
    limit.Tighten(Clamped(*number * static_cast<double>(unit->count())));
    return {};
  }
  const auto millis = ReadNumber(value);
  if (!millis) return WrongHeader(name, "not a number of milliseconds");
  if (*millis == 0 && name != "connect-timeout-ms") return {};
  limit.Tighten(Clamped(*millis * 1e6));
  return {};
}

}  // namespace tactus
