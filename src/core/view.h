// All that a policy sees of the world; read-only, valid during the call.
#pragma once

#include <span>

#include "core/lane.h"
#include "core/model.h"
#include "core/plan.h"
#include "core/profile_table.h"
#include "core/request_queue.h"

namespace tactus {

struct View {
  std::span<const Model> models;         // by ModelId
  std::span<const RequestQueue> queues;  // by ModelId, earliest deadline first
  std::span<const Lane> lanes;           // by LaneId
  const ProfileTable& profile;
  const Plan* plan = nullptr;  // set where a planner runs
};

}  // namespace tactus
