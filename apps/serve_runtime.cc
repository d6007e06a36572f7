#include "serve_runtime.h"

#include <string>

namespace tactus {
namespace {

Expiry ExpiryOf(const std::string& name) {
  if (name == "never") return Expiry::kNever;
  return name == "passed" ? Expiry::kPassed : Expiry::kUnmeetable;
}

}  // namespace

RuntimeOptions RuntimeOptionsOf(const ServeOptions& o) {
  RuntimeOptions r;
  r.lanes = o.lanes;
  r.slots = o.slots;
  r.threads = o.threads;
  r.queue_capacity = o.queue_capacity;
  r.expiry = ExpiryOf(o.expiry);
  r.follow = {.on = o.follow != "no",
              .percentile = o.percentile,
              .stalls = o.follow == "stalls",
              .margin = FromMillis(o.jitter_ms)};
  r.call_capacity = o.call_capacity;
  r.pending_bytes = o.pending_mb << 20;
  r.default_slo = FromMillis(o.default_slo_ms);
  r.pin = o.pin;
  r.spin = Micros(o.spin_us);
  return r;
}

}  // namespace tactus
