#include "service/deadline.h"

#include <algorithm>

namespace tactus {

TimePoint DeadlineOf(TimePoint received, Duration slo, const TimeLimit& limit) {
  const TimePoint model = slo < kNever - received ? received + slo : kNever;
  if (!limit.shortest()) return model;
  return std::min(model, received + *limit.shortest());
}

}  // namespace tactus
