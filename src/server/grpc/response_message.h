// From the runtime's answers to the protocol's messages.
#pragma once

#include <string>
#include <vector>

#include "grpc_service.pb.h"
#include "service/inference_service.h"

namespace tactus {

// Fills `head`, which is empty, with a successful reply but the bytes of its tensors; `id` is the
// request's.
void FillHead(const InferReply& reply, const std::string& id, inference::ModelInferResponse& head);

inference::ModelMetadataResponse MetadataOf(const ModelSpec& model,
                                            const std::vector<ModelState>& index);

inference::ModelStatisticsResponse StatisticsOf(const std::vector<ModelStatistics>& models);

// `ready_only` leaves out the versions that take no requests.
inference::RepositoryIndexResponse IndexOf(const std::vector<ModelState>& index, bool ready_only);

}  // namespace tactus
