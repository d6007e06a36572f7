// The REST calls of KServe v2, by way of an InferenceService.
#pragma once

#include <cstddef>
#include <memory>

#include "server/http/http_message.h"
#include "server/http/http_server.h"

namespace tactus {

class StreamSet;

// `service` and `streams`, which may be null, outlive the handler. Of the options it reads the
// limits of bodies, the number of threads and strict_triton.
std::unique_ptr<HttpHandler> MakeKServeHandler(const HttpOptions& options,
                                               InferenceService& service,
                                               StreamSet* streams = nullptr);

// GET /metrics, and health where there is a service, which outlives the handler.
std::unique_ptr<HttpHandler> MakeTextHandler(std::function<std::string()> text,
                                             const InferenceService* health, bool strict);

}  // namespace tactus
