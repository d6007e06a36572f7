#include "fleet/membership.h"

#include <algorithm>

namespace tactus {

const char* Name(Standing standing) {
  switch (standing) {
    case Standing::kAlive:
      return "alive";
    case Standing::kSuspected:
      return "suspected";
    case Standing::kDead:
      return "dead";
    case Standing::kAway:
      break;
  }
  return "away";
}

Membership::Membership(const std::vector<std::string>& declared, MembershipOptions options)
    : options_(options) {
  for (const std::string& name : declared) members_[name];
}

Membership::Heard Membership::Hear(const FromNode& message, TimePoint now) {
  const auto found = members_.find(message.node);
  if (found == members_.end()) return Heard::kUndeclared;
  Member& member = found->second;
  const bool known = member.who.count != 0;
  if (known && message.who == member.who) {
    member.heard = now;
    member.standing = Standing::kAlive;
    if (message.sequence <= member.sequence) return Heard::kOld;
    member.sequence = message.sequence;
    return Heard::kNews;
  }
  if (known && message.who.home == member.who.home && message.who.count < member.who.count) {
    return Heard::kEarlierLife;
  }
  // A node of another home may have the name once its bearer is silent.
  if (known && message.who.home != member.who.home && member.standing == Standing::kAlive) {
    return Heard::kNameTaken;
  }
  if (!std::holds_alternative<NodeHello>(message.what)) return Heard::kMustGreet;
  member = {
      .standing = Standing::kAlive, .who = message.who, .heard = now, .sequence = message.sequence};
  return Heard::kNewLife;
}

std::vector<Membership::Change> Membership::Step(TimePoint now) {
  std::vector<Change> changes;
  for (auto& [name, member] : members_) {
    if (!member.present()) continue;
    const Duration silence = now - member.heard;
    const Standing to = silence >= options_.dead_after      ? Standing::kDead
                        : silence >= options_.suspect_after ? Standing::kSuspected
                                                            : Standing::kAlive;
    if (to == member.standing) continue;
    member.standing = to;
    changes.push_back({name, to});
  }
  return changes;
}

TimePoint Membership::Next() const {
  TimePoint next = kNever;
  for (const auto& [name, member] : members_) {
    if (member.standing == Standing::kAlive) {
      next = std::min(next, member.heard + options_.suspect_after);
    } else if (member.standing == Standing::kSuspected) {
      next = std::min(next, member.heard + options_.dead_after);
    }
  }
  return next;
}

}  // namespace tactus
