// The parts of a journal that are text: its header and what changes on the way.
#pragma once

#include <string>
#include <string_view>

#include "base/expected.h"
#include "dispatch/journal_file.h"

namespace tactus {

std::string ToJson(const JournalHeader& header);
std::string ToJson(const ServedModels& served_models);
std::string ToJson(const Plan* plan);  // null: no plan
std::string ToJson(const LaneShare& share);

// Errors say what is wrong, not where the file lies. What they accept, a dispatcher accepts.
Expected<JournalHeader> ParseJournalHeader(std::string_view json);
// `lane_classes`: how many the lanes use. `known`: how many models were there before.
Expected<std::shared_ptr<const ServedModels>> ParseServedModels(std::string_view json,
                                                                std::size_t lane_classes,
                                                                std::size_t known);
// What decisions are made of; where engines run is not among it.
Expected<std::shared_ptr<const Plan>> ParsePlan(std::string_view json);
Expected<LaneShare> ParseLaneShare(std::string_view json, std::size_t lanes);

}  // namespace tactus
