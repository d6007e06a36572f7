// Who stands for leadership, tries for it, renews it, and knows until when it may lead. Pure but
// for the Coordination that it asks: the caller says what time it is. `Candidate` asks on a thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/serving_time.h"
#include "knowledge/coordination.h"

namespace tactus {

struct CandidacyOptions {
  Duration try_every = Seconds(1);            // while another leads
  Duration renew_every = Millis(3333);        // a third of a lease
  Duration renew_again = Millis(300);         // when nobody answered
  std::function<std::uint64_t()> above = {};  // what its term is to exceed; null: nothing
};

class Candidacy {
 public:
  using Log = std::function<void(const std::string&)>;

  // It stands as `name`.
  Candidacy(std::unique_ptr<knowledge::Coordination> coordination, std::string name,
            CandidacyOptions options, Log log);

  // Does what is due at `now`, read just before; may take as long as the coordination's service.
  void Step(TimePoint now);
  TimePoint Next() const { return next_; }
  // Gives leadership up, and stands for a term above this one.
  void StandAgain(std::uint64_t above, TimePoint now);

  // 0: it does not lead, and `until` is kStart.
  std::uint64_t term() const { return coordination_->term(); }
  TimePoint until() const { return coordination_->leads_until(); }
  // Who leads, as far as it heard; empty: nobody knows.
  const std::string& leader() const { return coordination_->leader(); }

 private:
  void Try(TimePoint now);
  void Renew(TimePoint now);
  // Once for each thing that is said.
  void Say(const std::string& what);

  const std::unique_ptr<knowledge::Coordination> coordination_;
  const std::string name_;
  const CandidacyOptions options_;
  const Log log_;
  std::uint64_t above_ = 0;
  TimePoint next_ = kStart;
  std::string said_;
};

}  // namespace tactus
