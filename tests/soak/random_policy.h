// Policies as a soak draws them: every registered one, with every option at random.
#pragma once

#include <string>

#include <fmt/format.h>

#include "chance.h"
#include "policies/registry.h"

namespace tactus {

// "NAME:option,option": options are drawn from all the values that mean something.
class PolicyText {
 public:
  PolicyText(std::string name, Chance& chance) : text_(std::move(name)), chance_(chance) {}

  // Half of the time, "key=" and one of the values.
  PolicyText& Maybe(const char* key, std::initializer_list<const char*> values) {
    if (chance_.OneIn(2)) return *this;
    const char* value = values.begin()[chance_.Below(values.size())];
    text_ += fmt::format("{}{}={}", text_.find(':') == std::string::npos ? ':' : ',', key, value);
    return *this;
  }
  const std::string& text() const { return text_; }
  bool Says(std::string_view option) const { return text_.find(option) != std::string::npos; }

 private:
  std::string text_;
  Chance& chance_;
};

inline std::string RandomPolicyText(const std::string& name, Chance& chance) {
  PolicyText text(name, chance);
  if (name.starts_with("symphony")) {
    text.Maybe("when", {"frontrun", "eager", "timeout", "latest"});
    if (text.Says("when=timeout")) text.Maybe("k", {"0", "0.5", "2", "20"});
    if (text.Says("when=timeout") && !text.Says("k=")) text.Maybe("share", {"0.1", "0.5", "1"});
    if (text.Says("when=frontrun")) text.Maybe("lead", {"0.1", "0.4", "1"});
    text.Maybe("gather", {"prefix", "window"});
    if (!text.Says("gather=prefix")) {
      text.Maybe("aim", {"0.1", "0.5", "0.8"}).Maybe("rate", {"1", "10", "200"});
    }
    return text.Maybe("ctrl", {"50", "700"}).Maybe("data", {"10", "300"}).text();
  }
  if (name == "clockwork") {
    return text.Maybe("sizes", {"1", "1/2/4", "2/3", "4/8"}).Maybe("margin", {"1.1", "3"}).text();
  }
  if (name == "nexus") {
    return text.Maybe("frontends", {"0", "2", "7"})
        .Maybe("grow", {"yes", "no"})
        .Maybe("epoch", {"10", "500"})
        .text();
  }
  if (name == "planned") {
    return text.Maybe("grow", {"yes", "no"})
        .Maybe("epoch", {"10", "500"})
        .Maybe("windows", {"order", "strict"})
        .text();
  }
  if (name == "shepherd") return text.Maybe("preempt", {"0", "1", "1.5", "8"}).text();
  if (name == "timeout") {
    text.Maybe("k", {"0.3", "3", "60"});
    if (!text.Says("k=")) text.Maybe("share", {"0.2", "1"});
    return text.Maybe("batch", {"1", "3", "64"})
        .Maybe("fill", {"0.5", "0.9"})
        .Maybe("preferred", {"2/4", "3"})
        .Maybe("drop", {"lost", "never"})
        .text();
  }
  if (name.starts_with("strait")) {
    text.Maybe("form", {"0", "0.5", "1"});
    if (!text.Says("form=0,") && !text.text().ends_with("form=0")) {
      text.Maybe("slack", {"0", "1", "20"}).Maybe("room", {"0", "0.5", "100"});
    }
    text.Maybe("cap", {"yes", "no"});
    if (!text.Says("cap=no")) text.Maybe("least", {"1", "30", "100"}).Maybe("step", {"0", "5"});
    return text.Maybe("starve", {"1", "50", "10000"})
        .Maybe("learn", {"yes", "no"})
        .Maybe("order", {"yes", "no"})
        .Maybe("meet", {"yes", "no"})
        .Maybe("protect", {"yes", "no"})
        .text();
  }
  if (name == "horizon") return text.text();  // it has none
  text.Maybe("batch", {"1", "2", "5"});
  for (const char* rival : {"temporal", "static-", "reactive-", "preemptive-"}) {
    if (name.starts_with(rival)) text.Maybe("form", {"0", "0.5", "1"});
  }
  if (name.starts_with("edgeserving")) text.Maybe("clip", {"1", "3", "1000"});
  return text.text();
}

inline std::string RandomPolicyText(Chance& chance) {
  const auto names = Policies();
  return RandomPolicyText(names[chance.Below(names.size())].name, chance);
}

// The twin that states the same decisions plainly; empty where there is none.
inline std::string PlainTwin(const std::string& text) {
  for (const char* name : {"symphony", "edgeserving", "strait"}) {
    if (text != name && !text.starts_with(std::string(name) + ":")) continue;
    return std::string(name) + "-plain" + text.substr(std::string(name).size());
  }
  return "";
}

// Whether the policy never launches what it knows to be late. The others run late batches by
// design: the papers' baselines, and EdgeServing, whose clipped urgency still serves a lost
// request.
inline bool NeverLate(const std::string& text) {
  for (const char* name : {"symphony", "clockwork", "nexus", "planned", "shepherd"}) {
    if (text.starts_with(name)) return true;
  }
  return false;
}

}  // namespace tactus
