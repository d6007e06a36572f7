// What parts the devices of an experiment have, where the command line or a plan file says so.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "experiment/experiment.h"
#include "workload/share_profiles.h"

namespace tactus {

// Which parts they have and how it is known what batches take there, for a reader: "50 % of a
// device and the whole, measured one by one".
std::string SharesText(const Experiment& experiment);

// Takes the shares on which batches were measured, ascending to the whole device, whose
// profile becomes the experiment's.
Status TakeMeasuredShares(std::span<const MeasuredShare> shares, Experiment& experiment);

// `tactus simulate --plan`: devices are split, and models placed, as the plan in the file says,
// into the shares that it was made for, whatever the scenario's are. Returns what is to be told of
// that, in lines. An error for a plan that does not fit the experiment, or of a profile that is
// among the files to be written.
Expected<std::string> TakePlan(const std::string& path, Experiment& experiment,
                               const std::vector<std::string>& written);

}  // namespace tactus
