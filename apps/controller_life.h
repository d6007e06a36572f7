// A controller from its start to its end: it stands for election where there is one, waits as a
// spare, leads with what the knowledge base remembers, and keeps history.
#pragma once

#include <string>

#include "cluster/control/controller.h"
#include "serving/log_queue.h"
#include "serving/stop_signals.h"

namespace tactus {

struct ControllerLifeFlags {
  std::string store;           // empty: a file in the folder of state
  std::string elect = "none";  // or what OpenCoordination takes
  std::string name;            // for the other controllers; empty: where it listens
  double lease_s = 10;
  double autoscale_s = 30;  // from look to look of the AutoScaler; 0: there is none
};

// What the knowledge base of a controller with this folder of state is called if nothing is said.
std::string DefaultStore(const std::string& state);

// Until a signal to stop, or until it has ended; the exit code.
int RunControllerLife(ControllerOptions options, const FleetInput& fleet,
                      const std::string& planner, const ControllerLifeFlags& flags,
                      StopSignals& signals, LogQueue& logs);

}  // namespace tactus
