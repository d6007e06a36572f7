// How much longer a batch's kernels take beside others: Strait's prediction model (Section 3.2,
// Eq. 4 and 5) and how it learns.
//
//   I = k a^x + c    x = w . T + u . (own tensor throughput, own L2 throughput)
//   D = 1 + p I      p: of the batch's priority level; 1 when nobody is beside it
//
// T is the time-weighted mean of the neighbours' throughput. All parameters learn online: one step
// of Adam for each finished batch, on the Huber loss of the predicted degree.
//
// Steps that make no sense are refused, and parameters stay in bounds, so that no single report and
// no run of them can make the model useless.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/expected.h"
#include "core/learned_state.h"
#include "core/resource_use.h"

namespace tactus {

inline constexpr int kStraitLevels = 8;  // deeper levels share the last coefficient

struct InterferenceOptions {
  double rate = 0.0075;  // Adam's, with beta1 and beta2 (Section 3.2, hyperparameter tuning)
  double beta1 = 0.7;
  double beta2 = 0.9;
  double huber = 0.5;  // errors beyond this pull no harder
  bool learn = true;   // false: the static model that the paper compares with
};

// What a batch meets on the device.
struct Exposure {
  Throughput neighbours{};  // T
  Throughput own{};
  int level = 0;
};

class Interference {
 public:
  // Places in the vector of parameters.
  static constexpr std::size_t kScale = 0, kBase = 1, kOffset = 2, kWeights = 3,
                               kOwn = kWeights + kResources, kPriority = kOwn + 2,
                               kParameters = kPriority + kStraitLevels;
  using Parameters = std::array<double, kParameters>;

  explicit Interference(const InterferenceOptions& options);

  // D >= 1.
  double Degree(const Exposure& exposure) const;

  // The batch met `exposure` on average and took `actual` times its profiled kernel time. False
  // when the step is refused: a degree that is no number or absurd, or a step that is not finite.
  bool Learn(const Exposure& exposure, double actual);

  // To be kept, and to go on from: after Restore the next steps are those of the model that was
  // saved, bit by bit. Restore refuses what lacks a parameter or knows another, numbers that are
  // none, and values out of bounds, and then changes nothing.
  LearnedState Save() const;
  Status Restore(const LearnedState& learned);

  // The levels are of other priorities from now on (core/priority_levels.h): what was learnt of a
  // priority goes where it is now, and a priority that is new begins anew.
  void Relevel(std::span<const int> before, std::span<const int> now);

  const Parameters& parameters() const { return parameters_; }
  std::int64_t refused() const { return refused_; }

 private:
  struct Forward {
    double x;
    double power;   // a^x
    double excess;  // I
  };
  Forward Run(const Exposure& exposure) const;
  bool Descend(const Parameters& gradient, std::size_t priority);

  const InterferenceOptions options_;
  Parameters parameters_;
  Parameters mean_{};    // Adam's first moment ...
  Parameters square_{};  // ... and second
  double decay1_ = 1;    // beta1^steps, beta2^steps
  double decay2_ = 1;
  std::int64_t steps_ = 0;
  std::int64_t refused_ = 0;
};

}  // namespace tactus
