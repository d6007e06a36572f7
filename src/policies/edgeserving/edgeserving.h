// EdgeServing in O(models) a decision, however many requests wait: the decisions of
// PlainEdgeServing, every one (edgeserving_test.cc compares them).
//
// What makes it possible. Ageing multiplies: a request that no clip touches has the urgency
//   exp((t - deadline) / slo) = exp((t - anchor) / slo) * exp((anchor - deadline) / slo),
// so the urgency of any run of requests at any t is one factor, common to all models with that SLO,
// times a difference of two prefix sums over deadlines, which an arrival extends at the tail and a
// served batch leaves behind. And a queue is in deadline order, so its clipped requests are a
// prefix, found by a cursor that only moves forward. A decision is then
//   distinct latencies * distinct SLOs exponentials, and for the few requests that reach the clip
//   between now and the end of the longest candidate, one binary search each.
// Every few SLOs the anchor moves to the present. That scales the sums by one factor, and their
// rounding with them, so a request's part is scaled once and taken anew the next time; but a
// request is clipped 1 + ln(clip) SLOs after it came, so few see that.
//
// Sums in another order differ in their last digits. Where a comparison is too close for that, it
// is settled by the plain score, so the trace is the same and not merely nearly always the same.
#pragma once

#include <string>
#include <vector>

#include "policies/edgeserving/edgeserving_plain.h"

namespace tactus {

class EdgeServing final : public Policy {
 public:
  EdgeServing(std::string name, EdgeServingOptions options)
      : Policy({.name = std::move(name)}), options_(options) {}

  Decision Decide(const View& view, TimePoint now) override;
  void Prepare(const View& view) override;
  void OnArrive(ModelId m, const Request& request) override;
  void OnPopFront(ModelId m, int count) override;
  void OnQueueChange(ModelId m) override { queues_[m.value()].rebuild = true; }

 private:
  // Prefix sums of exp((anchor - deadline) / slo) over one queue, in a ring beside the queue's own.
  struct QueueSums {
    std::uint32_t group = 0;
    bool rebuild = true;              // positions moved in a way that we were not told
    TimePoint changed_from = kNever;  // arrivals not yet summed have this deadline or a later one
    std::size_t live = 0;             // position of the first request that is not clipped
    std::size_t known = 0;            // sums hold for positions live to known
    std::size_t moved = 0;            // sums before this position were moved with the anchor
    double inherited = 0;             // bounds their error
    std::size_t terms = 0;            // added up since the sums began
    std::size_t size = 0;             // requests in the queue, while every arrival is summed
    TimePoint last{};                 // the deadline at the tail, likewise
    std::size_t head = 0;             // ring slot of position 0
    std::vector<double> ring;         // power of two
    // The sum over the requests from some fixed one at or before `live` up to before position i.
    double& At(std::size_t i) { return ring[(head + i) & (ring.size() - 1)]; }
    double Before(std::size_t i) const { return ring[(head + i) & (ring.size() - 1)]; }
  };

  // The models of one SLO age alike.
  struct Group {
    Duration slo{};
    double per_slo = 0;     // 1 / slo, in 1/ns
    Duration clip_after{};  // past its deadline by more than this, a request is clipped
    TimePoint anchor{};
    std::vector<ModelId> members;
    double clipped = 0;  // requests, this round
    double live = 0;     // sum over the others, as of the anchor
    double error = 0;    // bounds the rounding of live
  };

  // Requests of one group that are clipped by the end of a candidate but not yet now.
  struct Crossing {
    double count = 0;
    double sum = 0;
  };

  struct Scored {
    EdgeServingCandidate candidate;
    Crossing crossing;
    double score = 0;
    double error = 0;  // bounds the score's rounding
  };

  static double Rounding(const QueueSums& sums);        // bounds the error of a difference of two
  static double Aged(Duration by, const Group& group);  // exp(by / slo)
  static void Append(const Group& group, QueueSums& sums, TimePoint deadline);
  void Renew(Group& group, TimePoint now);
  void Refresh(const View& view, Group& group, TimePoint now);
  void RefreshQueue(const RequestQueue& queue, const Group& group, QueueSums& sums, TimePoint now);
  void MakeCandidates(const View& view, TimePoint now);
  void AddScores(const View& view, const Group& group, TimePoint now);
  void FindCrossings(const View& view, const Group& group, TimePoint now);
  void AddFewCrossings(const RequestQueue& queue, const QueueSums& sums, std::size_t end,
                       const Group& group, TimePoint now);
  void AddCrossings(const RequestQueue& queue, const QueueSums& sums, std::size_t end,
                    const Group& group, TimePoint now);
  void SortByLatency();
  double Served(const View& view, const EdgeServingCandidate& candidate, const Group& group,
                double age, TimePoint now) const;
  bool Beats(const View& view, Scored& challenger, Scored& best, TimePoint now) const;

  const EdgeServingOptions options_;
  std::vector<QueueSums> queues_;  // by ModelId
  std::vector<Group> groups_;
  std::vector<Scored> scored_;  // this round's candidates
  std::size_t candidates_ = 0;
  // scored_ in order of latency, and at each place in that order the requests that are clipped from
  // there on.
  struct Place {
    Duration latency{};
    std::uint32_t candidate = 0;
  };
  std::vector<Place> by_latency_;
  bool sorted_ = false;
  Duration longest_{};
  std::vector<Crossing> by_place_;
};

}  // namespace tactus
