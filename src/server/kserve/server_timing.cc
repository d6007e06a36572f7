#include "server/kserve/server_timing.h"

#include <fmt/format.h>

#include "core/request.h"

namespace tactus {

std::string ServerTiming(const InferReply& reply) {
  const ServedBy& served = reply.served;
  std::string timing;
  if (reply.status || served.batch > 0) {
    timing = fmt::format("queue;dur={:.3f}, exec;dur={:.3f}{}",
                         static_cast<double>(served.queue_us) * 1e-3,
                         static_cast<double>(served.execution_us) * 1e-3,
                         served.emulated ? R"(;desc="emulated")" : "");
  }
  if (reply.status) return timing;
  if (!timing.empty()) timing += ", ";
  timing += fmt::format(R"(refused;desc="{}")", Name(served.outcome));
  return timing;
}

}  // namespace tactus
