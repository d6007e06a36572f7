// The policies that state another's decisions as its paper does, for whoever links this instead of
// no_twins.cc: then they are in the registry, beside those whose decisions are held against theirs.
#include <array>

#include "policies/edgeserving/edgeserving_plain.h"
#include "policies/policy_makers.h"
#include "policies/strait/strait_plain_for_test.h"
#include "policies/symphony/symphony_plain_for_test.h"

namespace tactus {

std::span<const PolicyEntry> PlainTwins() {
  constexpr const char* kPlain = "the same decisions, written as the paper states them; slow";
  constexpr const char* kBrief = "the same decisions as in the paper; slow";
  static const std::array<PolicyEntry, 3> entries = {
      {{{"edgeserving-plain", kBrief, kPlain, kEdgeServingOptions},
        &MakeEdgeServing<PlainEdgeServing, true>},
       {{"symphony-plain", kBrief, kPlain, kSymphonyOptions}, &MakeSymphony<PlainSymphony>},
       {{"strait-plain", kBrief, kPlain, kStraitOptions}, &MakeStrait<PlainStrait>}}};
  return entries;
}

}  // namespace tactus
