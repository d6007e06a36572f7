// What a leader sees and does, as records for a knowledge base. It has no thread and no store: the
// leader tells it, and whoever writes takes what came.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/fleet_plan.h"
#include "fleet/history.h"
#include "knowledge/store.h"

namespace tactus {

class Chronicle final : public FleetHistory {
 public:
  using Utc = std::function<knowledge::UtcTime()>;
  // Rates and links are sampled so often: they are of a minute's windows, and change little sooner.
  static constexpr std::chrono::seconds kSampleEvery{10};

  // `utc` is asked for the instant of whatever it is told. `urgent`, which may be null, is called
  // when there is what should not wait for its second: a plan, or what became of one.
  Chronicle(FleetInput declared, std::string planner, Utc utc, std::function<void()> urgent = {});

  void OnLead(TimePoint, std::uint64_t term) override;
  void OnStanding(TimePoint, const std::string& node, Standing now) override;
  void OnReport(TimePoint, const FromNode& message) override;
  void OnTakenUp(TimePoint, PlanId id) override;
  void OnPlan(TimePoint, PlanId id, const FleetInput& input, const FleetPlan& plan) override;
  void OnScaled(TimePoint, PlanId id, const std::string& what) override;
  void OnRollout(TimePoint, PlanId id, bool adopted, const std::string& why) override;

  // The leader's term; 0: it does not lead yet, and there is nothing to write.
  std::uint64_t term() const;
  // What came since the last call, in the order in which it is to be written: samples and events
  // together, plans and what became of them each alone, so that one which the store refuses takes
  // nothing with it. From one thread, which may be another than the leader's.
  std::vector<knowledge::Batch> Take();

 private:
  struct Heard {
    std::string trouble;
    std::map<std::string, double> rates;  // requests a second, by model
    std::vector<MeasuredLink> links;
    knowledge::UtcTime at{};
  };
  struct Planned {
    knowledge::UtcTime made{};
    PlanId id;
    FleetInput input;
    FleetPlan plan;
  };
  // One of the two.
  struct Decided {
    std::vector<Planned> plan;
    std::vector<knowledge::Verdict> verdict;
  };
  // Under the mutex.
  void Happened(const std::string& kind, const std::string& subject, const std::string& text);

  void AddArrivals(const std::map<std::string, Heard>& heard, knowledge::UtcTime now,
                   knowledge::Batch& batch) const;
  void AddLinks(const std::map<std::string, Heard>& heard, knowledge::UtcTime now,
                knowledge::Batch& batch) const;
  knowledge::Batch BatchOf(const Decided& decided) const;

  const FleetInput declared_;
  const std::string planner_;
  const std::string mark_;
  const Utc utc_;
  const std::function<void()> urgent_;
  knowledge::UtcTime sampled_at_{};  // of whoever takes

  mutable std::mutex mutex_;
  std::uint64_t term_ = 0;  // under the mutex, as what follows
  std::map<std::string, Heard> heard_;
  std::vector<knowledge::Event> events_;
  std::vector<Decided> decided_;
  std::pair<PlanId, std::string> scaled_;  // the AutoScaler's last plan
};

}  // namespace tactus
