// L(b, share) where only the whole device was measured. gpu-lets' authors draw such curves (Figures
// 3 and 8) and print no numbers: flat where a batch is too small to use the whole device, and
// falling with the share where it is not. This stand-in has that shape:
//
//   L(b, share) = L(b) max(1, u(b) / share) ^ exponent
//
// with u(b) the part of the device that batch b can use. The exponent is how much of a lost percent
// is felt.
#pragma once

#include <string>
#include <vector>

#include "base/expected.h"
#include "core/profile_table.h"

namespace tactus {

// What u(b) is: the batch's use of the FMA pipelines, as a part of the most that any batch of its
// model has, whose largest then needs a whole device; or of the device, as profiled. The first is
// hard on sharing, for a device is seldom used that well; the second is kind to it, for a batch may
// keep a device busy and its pipelines waiting. What is true lies between, and nobody published it.
enum class UtilizationBase { kLargestBatch, kDevice };

struct ShareLatencyOptions {
  std::vector<double> shares;  // by lane class, in (0, 1]
  double exponent = 1;
  UtilizationBase utilization_base = UtilizationBase::kLargestBatch;
  std::vector<std::string> models;  // names by id, for errors
};

// `whole` has one lane class, the whole device; the result one for each share.
// kInvalidArgument: a model's use of resources is not known.
Expected<ProfileTable> OnShares(const ProfileTable& whole, const ShareLatencyOptions& options);

}  // namespace tactus
