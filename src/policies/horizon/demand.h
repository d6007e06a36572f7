// What is asked of the lanes: the rates of the last half second, and what follows from them alone,
// whatever waits now. Reviewed every 50 ms in which requests come.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "policies/horizon/lane_kinds.h"

namespace tactus {

// What to expect of one model on one kind of lane.
struct Outlook {
  double rate = 0;  // requests per second that this kind will have to serve
  int target = 1;   // b* of window gathering: what the load can sustain
  int depth = 0;    // place in the hull that the rates leave time for
  // A batch may go so long before its frontrun.
  Duration lead{};
  // One model alone asks for more than all lanes, and this one for no more than a fair share of
  // them: it is served before that one is.
  bool spared = false;
};

class Demand {
 public:
  void Prepare(const View& view, const LaneKinds& kinds);

  // An arrival, while so many requests of all models waited or ran; instants do not fall. True when
  // the outlook has to be reviewed.
  bool Count(ModelId m, TimePoint at, std::int64_t underway);
  // So many wait or run from now on.
  void NoteUnderway(std::int64_t underway, TimePoint now);
  // Whether requests come because others were answered: callers that wait for their answers, or
  // the next steps of pipelines. Then nobody comes to join a batch while lanes wait for it.
  bool answers_bring_requests() const { return answers_bring_requests_; }
  // Where nothing came in a whole step: the rates fall with time alone, so that whoever came last
  // does not wait for company until its deadline. True when the outlook has to be reviewed.
  bool Pass(TimePoint now);
  // When Pass says so next.
  TimePoint quiet() const { return step_end_ + kStep; }
  void Review(const View& view, const LaneKinds& kinds);

  const Outlook& Of(std::uint32_t kind, ModelId m) const {
    return outlooks_[kind * counts_.size() + m.value()];
  }
  // Lanes of this kind that the rates keep busy.
  double Needed(std::uint32_t kind) const { return needed_[kind]; }
  // What the longest batch at the quickest exit takes there.
  Duration Longest(std::uint32_t kind) const { return longest_[kind]; }
  // Requests of m that were given up or lost, for whoever shares out what must be left out.
  void GiveUp(ModelId m, int count) { counts_[m.value()].lost += count; }
  // The part of the requests of late that was lost.
  double LostPart(ModelId m) const { return counts_[m.value()].lost_part; }

 private:
  static constexpr std::int64_t kSteps = 10;
  static constexpr Duration kStep = Millis(50);

  struct Counts {
    std::array<std::int64_t, kSteps> came{};  // by step modulo kSteps
    std::int64_t current = 0;
    double per_second = 0;
    double lost = 0;  // decays from step to step as `seen` does
    double seen = 0;
    double lost_part = 0;
  };

  void Roll(TimePoint at);
  bool AnswersBringRequests() const;
  void ReviewKind(const View& view, const LaneKinds& kinds, std::uint32_t kind);
  void ShareOut(const KindOfLane& kind, std::uint32_t k);

  // The requests under way as time sees them and as arrivals see them; decays.
  struct Underway {
    double seconds = 0;
    double sum = 0;       // over time
    double squares = 0;   // over time
    double arrivals = 0;  // of several at once, the first
    double seen = 0;      // by them, in sum
  };

  std::vector<Counts> counts_;     // by ModelId
  std::vector<Outlook> outlooks_;  // by kind, then model
  std::vector<double> needed_;     // by kind
  std::vector<Duration> longest_;  // by kind
  std::vector<double> load_;       // by ModelId: lanes that it takes of the kind at hand
  std::vector<int> sustained_;     // by ModelId: b* there
  Underway underway_;
  double now_underway_ = 0;
  std::optional<TimePoint> noted_;  // since when they are so many
  bool counted_ = false;            // an arrival since then
  bool answers_bring_requests_ = false;
  std::int64_t first_step_ = -1;
  std::int64_t at_step_ = -1;
  TimePoint step_end_{Duration::min()};
};

}  // namespace tactus
