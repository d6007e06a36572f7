// Symphony as the paper states it: deferred batch scheduling, Algorithm 1 over all models at every
// question. A decision costs O(models * batch); to be read beside the paper, and good for a few
// models on a few lanes.
//
//   UPDATECANDIDATE    MakeCandidate (candidate.h), made anew from the queue
//   ONMODELTIMER       the Wait until the earliest `exec`, then the free lane with the least id
//   ONGPUTIMER         the question after a Finish: the schedulable candidate with the least latest
//
// A candidate's lane class is that of the free lane with the least id, so lanes may differ.
// Departure: timers compare with "not later than" where the algorithm writes "earlier than"; in
// exact virtual time a strict comparison would wait forever for the instant at hand.
#pragma once

#include <string>
#include <vector>

#include "core/policy.h"
#include "policies/symphony/candidate.h"

namespace tactus {

enum class Gather {
  kPrefix,  // the longest prefix that meets the head's deadline; heads go only when they are lost
  kWindow,  // heads that would hold the batch under b* are dropped
};

struct SymphonyOptions {
  CandidateOptions candidate;
  Gather gather = Gather::kPrefix;
  Duration rate_window = Seconds(1);  // of the arrivals from which b* is derived
};

class PlainSymphony final : public Policy {
 public:
  PlainSymphony(std::string name, SymphonyOptions options)
      : name_(std::move(name)), options_(options) {}

  std::string_view name() const override { return name_; }
  Decision Decide(const View& view, TimePoint now) override;
  void Prepare(const View& view) override;
  void OnArrive(ModelId m, const Request& request) override;

 private:
  // Arrivals per second, over whole windows: the count of the last complete one.
  struct RateWindow {
    TimePoint begin{};
    std::int64_t count = 0;
    double rate = 0;
  };

  const std::string name_;
  const SymphonyOptions options_;
  std::vector<RateWindow> rates_;  // by ModelId
};

}  // namespace tactus
