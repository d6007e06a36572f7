// What a model's parameters say of one operator: the keys that begin with the operator's name and a
// dot. Each is read with its default and bounds; the first mistake is kept for the end, so that
// reading is one line for each.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"

namespace tactus::op {

class Arguments {
 public:
  // `step` is the operator's name in its chain; `data_file` the model's file, empty where it has
  // none.
  Arguments(std::string step, const std::map<std::string, std::string>& parameters,
            std::filesystem::path data_file);

  const std::string& step() const { return step_; }
  const std::filesystem::path& data_file() const { return data_file_; }
  bool Has(std::string_view key) const;

  // A whole number in [least, most].
  int Whole(std::string_view key, int otherwise, int least, int most);
  // As Whole, which must be given.
  int Needed(std::string_view key, int least, int most);
  // A number in [least, most].
  double Number(std::string_view key, double otherwise, double least, double most);
  // As many as `otherwise` has, by comma.
  std::vector<double> Numbers(std::string_view key, std::vector<double> otherwise, double least,
                              double most);
  // Any many, up to 1024, by comma.
  std::vector<int> Wholes(std::string_view key, std::vector<int> otherwise, int least, int most);
  // One of `choices`; the first where it is not given.
  std::string OneOf(std::string_view key, std::vector<std::string> choices);
  // The tensor that a port is connected to, where it is stated.
  std::optional<std::string> Tensor(std::string_view port);

  // A mistake of the operator's own finding: "operator 'crop': argument crop.width: ...".
  void Wrong(std::string_view key, std::string_view why);
  // The first mistake; then keys that nobody has read.
  Status End();

 private:
  // Null: not given.
  const std::string* Find(std::string_view key);

  const std::string step_;
  std::map<std::string, std::string, std::less<>> given_;  // without the step's name
  std::set<std::string, std::less<>> read_;
  const std::filesystem::path data_file_;
  Status status_;
};

// "a, b,c" without blanks at the ends of its parts.
std::vector<std::string> SplitList(std::string_view list);

}  // namespace tactus::op
