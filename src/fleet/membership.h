// Who belongs to the fleet and is heard of: nodes say hello, beat, are suspected when they are
// silent and dead when they stay so. Pure: the caller says what came and what time it is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/serving_time.h"
#include "fleet/messages.h"

namespace tactus {

struct MembershipOptions {
  Duration suspect_after = Seconds(3);  // of silence
  Duration dead_after = Seconds(10);
  Duration beat_every = Seconds(1);  // what nodes are told: a sign of life so often

  // A node is suspected after 0.3 of `dead`, and gives ten signs of life in it, or one each second.
  static MembershipOptions DeadAfter(Duration dead) {
    return {dead * 3 / 10, dead, std::min(dead / 10, Duration(Seconds(1)))};
  }
};

enum class Standing {
  kAway,  // declared, and never heard of by this leader
  kAlive,
  kSuspected,
  kDead,
};
const char* Name(Standing standing);

struct Member {
  Standing standing = Standing::kAway;
  Incarnation who;
  TimePoint heard = kStart;
  std::uint64_t sequence = 0;  // of the last message

  bool present() const { return standing == Standing::kAlive || standing == Standing::kSuspected; }
};

class Membership {
 public:
  explicit Membership(const std::vector<std::string>& declared, MembershipOptions options = {});

  enum class Heard {
    kNews,         // the latest of this incarnation
    kOld,          // late or doubled: it lives, and the message is ignored
    kNewLife,      // a hello of an incarnation that was not known: the node (re)started
    kMustGreet,    // a beat of an incarnation that has not said hello
    kEarlierLife,  // its node has been started again since
    kNameTaken,    // another node of this name is here
    kUndeclared,   // the fleet has no node of this name
  };
  // `now` does not fall.
  Heard Hear(const FromNode& message, TimePoint now);

  struct Change {
    std::string node;
    Standing to;
  };
  // What silence has made of whom since the last call.
  std::vector<Change> Step(TimePoint now);
  // When Step may next find something; kNever: nothing is awaited.
  TimePoint Next() const;

  // By name; the declared nodes and no others.
  const std::map<std::string, Member>& members() const { return members_; }

 private:
  const MembershipOptions options_;
  std::map<std::string, Member> members_;
};

}  // namespace tactus
