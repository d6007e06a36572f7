#include "server/kserve/server_timing.h"

#include <algorithm>
#include <cstdint>

#include "base/append.h"
#include "core/request.h"

namespace tactus {
namespace {

// With three digits behind the point.
void AppendMillis(std::string& out, std::int64_t micros) {
  micros = std::max<std::int64_t>(micros, 0);
  const std::int64_t rest = micros % 1000;
  AppendAll(out, micros / 1000, rest < 10 ? ".00" : rest < 100 ? ".0" : ".", rest);
}

}  // namespace

std::string ServerTiming(const InferReply& reply) {
  const ServedBy& served = reply.served;
  std::string timing;
  if (reply.status || served.batch > 0) {
    timing.reserve(64);
    AppendAll(timing, "queue;dur=");
    AppendMillis(timing, served.queue_us);
    AppendAll(timing, ", exec;dur=");
    AppendMillis(timing, served.execution_us);
    if (served.emulated) AppendAll(timing, R"(;desc="emulated")");
  }
  if (reply.status) return timing;
  AppendAll(timing, timing.empty() ? "" : ", ", R"(refused;desc=")", Name(served.outcome), R"(")");
  return timing;
}

}  // namespace tactus
