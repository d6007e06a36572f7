// Which call a path means.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/access/scope.h"

namespace tactus {

enum class Endpoint {
  kUnknown,
  kUnsupported,  // of the protocol, but not of this server: generation
  kSettings,     // the same: shared memory, tracing, logging, which change the server
  kHealthLive,
  kHealthReady,
  kServer,
  kModel,
  kModelReady,
  kInfer,
  kConfig,
  kStatistics,
  kIndex,
  kLoad,
  kUnload,
};

struct Route {
  Endpoint endpoint = Endpoint::kUnknown;
  std::string model;    // decoded; empty where the path names none
  std::string version;  // as it stands in the path; empty: the latest
};

// `target` is a request's target: a query is ignored, percent signs are decoded in names only, and
// one slash at the end does no harm.
Route RouteOf(std::string_view target);

// What a token must grant for it.
Scope ScopeOf(Endpoint endpoint);

// The Allow field of the endpoint: "POST" or "GET, HEAD".
std::string_view AllowedVerbs(Endpoint endpoint);

}  // namespace tactus
