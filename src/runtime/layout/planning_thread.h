// A server that plans by itself: what the simulator does in virtual time
// (sim/world/plan_executor.h), on a thread. It counts what comes and what is late, asks for a plan
// when one is due (placement/replanner.h), and has the runtime split its device as the plan says.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "placement/replanner.h"
#include "platform/repeated_task.h"
#include "runtime/runtime.h"
#include "service/readings.h"

namespace tactus {

class PlanningThread {
 public:
  struct Ended {  // calls since the start, but for those that their client took back
    std::int64_t in_time = 0;
    std::int64_t late = 0;  // or never answered
  };
  struct Options {
    ReplannerOptions replanner;
    // Where averages begin, in requests/s; models that it lacks begin at 0.
    std::map<std::string, double> declared_rps;
    std::function<Ended()> ended;
    // A line for people: what was done, and what went wrong. On the thread that looks.
    std::function<void(const std::string&)> tell;
    std::function<void(const std::string&)> warn;
  };

  // `runtime` is split, and outlives this.
  PlanningThread(Runtime& runtime, std::unique_ptr<Planner> planner, Options options);

  // Splits the device for the declared rates. What Replanner::First says where no plan sustains
  // them; what Runtime::Adopt says where the lanes cannot be had.
  Status First();
  // From here on it looks at every Replanner::kLook, on a thread of its own.
  void Start();
  // Waits for the change that is under way, which Runtime::EndChanges cuts short.
  void Stop() { thread_.Stop(); }

  // Once `passed` went by since the last: counts, and changes the layout if that is due, which
  // blocks until the old lanes are gone. One call at a time; Start's thread makes them.
  void Look(Duration passed);

  PlanningReading reading() const;  // thread-safe

 private:
  Status TakeModels();
  void Count();
  Plan Current() const;
  Status Change(const Plan& plan);
  void Note(Duration took, bool asked);
  void Stays(const Error& why);
  // A problem that lasts is told once, not at each look.
  void WarnOnce(std::string_view kind, const std::string& problem);

  Runtime& runtime_;
  const Options options_;
  std::shared_ptr<const ServedModels> served_models_;  // that question_ was made of
  PlanQuestion question_;
  std::vector<std::string> names_;  // by ModelId of question_
  Replanner replanner_;
  std::map<std::string, double> rates_rps_;       // averages, also of models that are gone
  std::map<std::string, std::uint64_t> offered_;  // by model, as of the last look
  Ended ended_;                                   // as of the last look
  std::string problem_;                           // the kind that was warned of last
  mutable std::mutex reading_mutex_;
  PlanningReading reading_;
  RepeatedTask thread_;  // last: it uses the others
};

// "75 %: 4 ee_s, 2 ee_l every 333 ms; 25 %: 1 ee_mlp every 700 ms": its lanes, with their batches.
std::string LayoutText(const Plan& plan, const std::vector<std::string>& models);

}  // namespace tactus
