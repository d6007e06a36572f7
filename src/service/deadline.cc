#include "service/deadline.h"

#include <algorithm>

namespace tactus {

TimePoint DeadlineOf(TimePoint received, Duration slo, const TimeLimit& limit, Duration way) {
  TimePoint deadline = slo < kNever - received ? received + slo : kNever;
  if (limit.shortest()) deadline = std::min(deadline, received + *limit.shortest());
  if (deadline == kNever || deadline <= received) return deadline;
  return deadline - std::min(way, (deadline - received) / 4);
}

}  // namespace tactus
