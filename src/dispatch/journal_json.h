// The parts of a journal that are text: its header and its deployments.
#pragma once

#include <string>
#include <string_view>

#include "base/expected.h"
#include "dispatch/journal_file.h"

namespace tactus {

std::string ToJson(const JournalHeader& header);
std::string ToJson(const Deployment& deployment);

// Errors say what is wrong, not where the file lies. What they accept, a dispatcher accepts.
Expected<JournalHeader> ParseJournalHeader(std::string_view json);
// `lane_classes`: how many the lanes use. `known`: how many models were there before.
Expected<std::shared_ptr<const Deployment>> ParseDeployment(std::string_view json,
                                                            std::size_t lane_classes,
                                                            std::size_t known);

}  // namespace tactus
