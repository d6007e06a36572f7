// The life of a server, `tactus serve` or `tactus front-end`, from its options to its end.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include <spdlog/logger.h>

#include "commands.h"
#include "platform/memory_reserve.h"
#include "serving/idle_memory.h"
#include "serving/log_queue.h"
#include "serving/patient_sink.h"
#include "serving/serve_options.h"
#include "serving/stop_signals.h"

namespace tactus {

// Until a signal to stop; the exit code. `Served` is Server or FrontEnd (serving/).
template <typename Served>
int RunServer(const ServeOptions& o) {
  KeepFreedMemory();
  MemoryReserve::Hold();
  StopSignals signals;  // before anything starts a thread
  const LogQueue logs(o.log_level, o.log_format);
  std::jthread starting = signals.EndAtOnce();
  auto server = Served::Make(o, logs);
  if (!server) return ReportBadInput(server.error());
  starting = {};
  if (Status opened = (*server)->Open(); !opened) return ReportBadInput(opened.error());
  SayPatiently((*server)->Text());
  (*server)->Announce(SayPatiently);
  const char* const signal = signals.Wait([&] { (*server)->TakePlanAgain(); });
  logs.log()->info("{}: no new calls; those under way have {:g} s", signal, o.grace_s);
  StopSignals::EndWithin(std::chrono::milliseconds(static_cast<std::int64_t>(o.grace_s * 1000)));
  (*server)->Stop();
  return 0;
}

}  // namespace tactus
