// How many lanes a processor is split into, and how many threads run a batch in each: what
// `--lanes auto` means, in the server and in a scenario.
//
// Units: processors are whole ones that the process may use (a quota's fraction is rounded down);
// latencies are Durations, by the number of rows in the batch; a weight is a model's part of all
// requests, in any unit.
//
// Why so. One thread a lane wastes nothing: a batch on two threads takes more than half as long.
// But a batch that a second thread makes quicker meets an SLO that it would miss on one, and leaves
// time to wait for others and room for more rows. What that is worth depends on how often requests
// come together. So each number of threads is tried on a small model of the lanes: Poisson arrivals
// by weight, always the same ones; whenever a lane is free, the model whose first request must
// start the soonest has a batch, as large as waits and as that request's deadline allows, at the
// quickest exit, which policies use under load; what can no longer meet its deadline is given up.
// The highest rate at which no model loses more than 1 % of its requests is the worth of that
// number of threads. Before that counts how many models meet their SLO with a batch of one at all.
// Between two numbers that are worth nearly the same, the fewer threads are taken. There are as
// many lanes as fit. A number of threads that leaves cores idle is not tried where one more thread
// a lane would use them.
//
// What the model does not know: how much lanes slow each other through caches and memory that they
// share, deferral, and what clients' threads take of the lanes' cores.
//
// Of more than two processors, one is left to the threads that talk to clients and decide: a batch
// that waits for them, or they for it, is late. Of two, half the machine would be too much.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/serving_time.h"

namespace tactus {

// A model, as far as the choice needs it.
struct ModelDemand {
  std::string model;
  Duration slo{};
  double weight = 1;
  // What a batch takes at the quickest exit, by threads: b rows at index b - 1. Empty: not known;
  // such a model asks for nothing.
  std::map<int, std::vector<Duration>> by_threads = {};
};

struct LaneQuestion {
  int processors = 1;
  int slots = 1;    // batches at once in a lane, each on threads of its own
  int threads = 0;  // of a lane's batch; 0: to be chosen
  std::vector<ModelDemand> demands = {};
};

struct LaneChoice {
  int lanes = 1;
  int threads = 1;
  int kept = 0;     // processors that are left to other threads
  std::string why;  // a sentence for people, without a full stop

  bool operator==(const LaneChoice&) const = default;
};

// The same for the same question.
LaneChoice ChooseLanes(const LaneQuestion& question);

// What so many lanes of so many threads are worth.
struct LaneWorth {
  int met = 0;          // models whose SLO a batch of one meets
  double peak_rps = 0;  // of those models together
};
LaneWorth WorthOf(const LaneQuestion& question, int lanes, int threads);

}  // namespace tactus
