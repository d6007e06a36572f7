// Which call a path means.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/access/scope.h"
#include "server/http/http_message.h"

namespace tactus {

enum class Endpoint {
  kUnknown,
  kUnsupported,  // of the protocol, but not of this server: generation
  kRegions,      // the status of shared memory, which has none here
  kUnregister,   // of shared memory
  kRegister,     // the same, which this server does not
  kHealthLive,
  kHealthReady,
  kServer,
  kLogging,
  kTrace,  // of the server, or of a model
  kModel,
  kModelReady,
  kInfer,
  kConfig,
  kStatistics,
  kIndex,
  kLoad,
  kUnload,
  kUi,       // a file of the live page
  kLive,     // what that page shows
  kWhatIf,   // and what it asks
  kStreams,  // this and all that follow are of streams
  kStream,
  kStreamEvents,
  kStreamVideo,
  kStreamView,
};

struct Route {
  Endpoint endpoint = Endpoint::kUnknown;
  std::string model;    // decoded; empty where the path names none; or a stream, a region, a file
  std::string version;  // as it stands in the path; empty: the latest
};

// `target` is a request's target: a query is ignored, percent signs are decoded in names only, and
// one slash at the end does no harm.
Route RouteOf(std::string_view target);

// What a token must grant for it. Streams and trace settings are read by readers, and changed by
// admins.
Scope ScopeOf(Endpoint endpoint, Verb verb);

// The extension that a path of kUnsupported, kRegister, kLogging or kTrace belongs to: "trace".
std::string_view ExtensionOf(std::string_view target);

// Whether it is of streams.
bool IsOfStreams(Endpoint endpoint);

// The Allow field of the endpoint: "POST", "GET, HEAD", "GET, HEAD, POST" or "GET, HEAD, POST,
// DELETE".
std::string_view AllowedVerbs(Endpoint endpoint);

}  // namespace tactus
