// How many requests a scenario brings.
#pragma once

#include "base/expected.h"
#include "workload/scenario.h"

namespace tactus {

// To models, in the mean; callers that wait for their answers may make more or fewer.
double ExpectedRequests(const Scenario& scenario);
// An error where more than `most` come, or can come from callers that wait for their answers.
Status CheckRequests(const Scenario& scenario, double most);

}  // namespace tactus
