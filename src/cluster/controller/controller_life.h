// A controller from its start to its end: it stands for election where there is one, waits as a
// spare, leads with what the knowledge base remembers, and keeps history.
#pragma once

#include <functional>
#include <string>

#include "cluster/control/controller.h"

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

// Whom it hears and tells.
struct ControllerWorld {
  // Waits a moment for a signal to stop; whether one came.
  std::function<bool()> told_to_end;
  std::function<void(const std::string&)> print;  // where it listens, for programs
  Controller::Log log;
};

// Until it is told to end, or has ended; the exit code. An error for flags that are no use, and
// where it cannot listen.
Expected<int> RunControllerLife(ControllerOptions options, const FleetInput& fleet,
                                const std::string& planner, const ControllerLifeFlags& flags,
                                ControllerWorld world);

}  // namespace tactus
