// The options of a policy, or of a planner, as its name carries them: "batch=1,clip=10" after the
// colon. Whoever makes one takes out what it knows; what is left is unknown to it.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "base/serving_time.h"

namespace tactus {

class PolicyOptions {
 public:
  // An option is key=value, or a flag: a key alone. One that is given twice is an error. `whose`
  // stands in messages.
  static Expected<PolicyOptions> Parse(std::string_view text, std::string_view whose = "policy");

  bool Has(std::string_view key) const { return values_.contains(key); }
  // An option that was given and would change nothing `without` another ("when=timeout"), or
  // `beside` one that overrides it, is an error. To be asked before the option is taken out.
  void Needs(std::string_view key, bool there, std::string_view without);
  void Overridden(std::string_view key, std::string_view beside);

  // An option that has another name now is an error that says which.
  void Renamed(std::string_view key, std::string_view now);

  // Takes the flag out; whether it was given.
  bool Flag(std::string_view key);
  // Each takes the option out; `otherwise` when it was not given. After a first error, which
  // status() keeps, they answer with `otherwise`.
  double Number(std::string_view key, double otherwise, double least, double most);
  int Whole(std::string_view key, int otherwise, int least, int most);
  Duration Millis(std::string_view key, double otherwise, double least = 0);
  Duration Micros(std::string_view key, double otherwise);
  std::optional<Duration> MicrosIfGiven(std::string_view key);
  // One of `names`, by index; the first when it was not given.
  std::size_t Name(std::string_view key, std::initializer_list<std::string_view> names);
  // "4/8/16": rising whole numbers from 1 to `most`.
  std::vector<int> List(std::string_view key, int most);

  const Status& status() const { return status_; }
  bool empty() const { return values_.empty(); }
  const std::string& first_left() const { return values_.begin()->first; }

 private:
  void Complain(std::string_view key, std::string_view text, std::string_view expected);

  std::string whose_;
  std::map<std::string, std::string, std::less<>> values_;
  Status status_;
};

}  // namespace tactus
