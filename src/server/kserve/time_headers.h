// Header fields by which clients and proxies limit a call's time, over HTTP and as gRPC metadata
// alike. docs/reference/deadlines.md has the table.
#pragma once

#include <array>
#include <string_view>

#include "base/expected.h"
#include "service/deadline.h"

namespace tactus {

// Names in lower case, as HTTP/2 sends them. gRPC's own library takes the last one for itself.
inline constexpr std::array<std::string_view, 6> kTimeHeaders{
    "x-request-timeout-ms", "x-envoy-expected-rq-timeout-ms",
    "x-llm-d-slo-ttft-ms",  "x-slo-ttft-ms",
    "connect-timeout-ms",   "grpc-timeout"};

// Tightens `limit` by the value of one of them. What is below 0 leaves no time. So does 0 in
// connect-timeout-ms and grpc-timeout; in the others it is no limit, as their senders mean it.
// InvalidArgument, with the field's name, for what is no time.
Status ReadTimeHeader(std::string_view name, std::string_view value, TimeLimit& limit);

}  // namespace tactus
