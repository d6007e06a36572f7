#include "server/http/route.h"

#include <array>
#include <span>
#include <utility>

namespace tactus {
namespace {

constexpr std::size_t kMostSegments = 8;

// The path's segments; nothing where there are more than any path of the protocol has.
struct Path {
  std::array<std::string_view, kMostSegments> segments;
  std::size_t size = 0;
  bool valid = false;
};

Path Split(std::string_view target) {
  Path path;
  target = target.substr(0, target.find_first_of("?#"));
  if (!target.starts_with('/')) return path;
  target.remove_prefix(1);
  if (target.ends_with('/')) target.remove_suffix(1);
  for (;;) {
    if (path.size == kMostSegments) return path;
    const std::size_t slash = target.find('/');
    path.segments[path.size++] = target.substr(0, slash);
    if (slash == target.npos) break;
    target.remove_prefix(slash + 1);
  }
  path.valid = true;
  return path;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string Decoded(std::string_view text) {
  if (text.find('%') == text.npos) return std::string(text);
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size();
    const int high = escape ? HexDigit(text[i + 1]) : -1;
    const int low = escape ? HexDigit(text[i + 2]) : -1;
    if (high >= 0 && low >= 0) {
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

using Segments = std::span<const std::string_view>;

Endpoint ModelEndpoint(Segments rest) {
  if (rest.empty()) return Endpoint::kModel;
  if (rest.size() == 2 && rest[0] == "trace" && rest[1] == "setting") return Endpoint::kTrace;
  if (rest.size() != 1) return Endpoint::kUnknown;
  if (rest[0] == "infer") return Endpoint::kInfer;
  if (rest[0] == "ready") return Endpoint::kModelReady;
  if (rest[0] == "config") return Endpoint::kConfig;
  if (rest[0] == "stats") return Endpoint::kStatistics;
  if (rest[0] == "generate" || rest[0] == "generate_stream") return Endpoint::kUnsupported;
  return Endpoint::kUnknown;
}

// What follows /v2/models.
Route ModelRoute(Segments rest) {
  if (rest.empty() || rest[0].empty()) return {};
  if (rest.size() == 1 && rest[0] == "stats") return {Endpoint::kStatistics, {}, {}};
  Route route;
  route.model = Decoded(rest[0]);
  rest = rest.subspan(1);
  if (!rest.empty() && rest[0] == "versions") {
    if (rest.size() < 2 || rest[1].empty()) return {};
    route.version = rest[1];
    rest = rest.subspan(2);
  }
  route.endpoint = ModelEndpoint(rest);
  return route;
}

// What follows /v2/streams.
Route StreamRoute(Segments rest) {
  if (rest.empty()) return {Endpoint::kStreams, {}, {}};
  if (rest[0].empty() || rest.size() > 2) return {};
  std::string name = Decoded(rest[0]);
  if (rest.size() == 1) return {Endpoint::kStream, std::move(name), {}};
  if (rest[1] == "events") return {Endpoint::kStreamEvents, std::move(name), {}};
  if (rest[1] == "video") return {Endpoint::kStreamVideo, std::move(name), {}};
  if (rest[1] == "view") return {Endpoint::kStreamView, std::move(name), {}};
  return {};
}

// What follows /v2/repository.
Route RepositoryRoute(Segments rest) {
  if (rest.size() == 1 && rest[0] == "index") return {Endpoint::kIndex, {}, {}};
  if (rest.size() != 3 || rest[0] != "models" || rest[1].empty()) return {};
  if (rest[2] == "load") return {Endpoint::kLoad, Decoded(rest[1]), {}};
  if (rest[2] == "unload") return {Endpoint::kUnload, Decoded(rest[1]), {}};
  return {};
}

// What follows /v2/systemsharedmemory and /v2/cudasharedmemory.
Route MemoryRoute(Segments rest) {
  Route route;
  if (rest.size() > 1 && rest[0] == "region" && !rest[1].empty()) {
    route.model = Decoded(rest[1]);
    rest = rest.subspan(2);
  }
  if (rest.size() != 1) return {};
  if (rest[0] == "status") route.endpoint = Endpoint::kRegions;
  if (rest[0] == "unregister") route.endpoint = Endpoint::kUnregister;
  if (rest[0] == "register") route.endpoint = Endpoint::kRegister;
  return route;
}

}  // namespace

Route RouteOf(std::string_view target) {
  const Path path = Split(target);
  if (!path.valid) return {};
  const std::string_view first = path.segments[0];
  if (path.size == 1 && (first.empty() || first == "ui")) return {Endpoint::kUi, {}, {}};
  if (path.size == 2 && first == "ui") return {Endpoint::kUi, std::string(path.segments[1]), {}};
  if (first != "v2") return {};
  const Segments rest = Segments(path.segments).first(path.size).subspan(1);
  if (rest.empty()) return {Endpoint::kServer, {}, {}};
  if (rest[0] == "models") return ModelRoute(rest.subspan(1));
  if (rest[0] == "repository") return RepositoryRoute(rest.subspan(1));
  if (rest[0] == "streams") return StreamRoute(rest.subspan(1));
  if (rest[0] == "health" && rest.size() == 2) {
    if (rest[1] == "live") return {Endpoint::kHealthLive, {}, {}};
    if (rest[1] == "ready") return {Endpoint::kHealthReady, {}, {}};
  }
  const bool memory = rest[0] == "systemsharedmemory" || rest[0] == "cudasharedmemory";
  if (memory) return MemoryRoute(rest.subspan(1));
  if (rest.size() == 2 && rest[0] == "trace" && rest[1] == "setting") {
    return {Endpoint::kTrace, {}, {}};
  }
  if (rest.size() == 2 && rest[0] == "tactus") {
    if (rest[1] == "live") return {Endpoint::kLive, {}, {}};
    if (rest[1] == "whatif") return {Endpoint::kWhatIf, {}, {}};
  }
  if (rest.size() == 1 && rest[0] == "logging") return {Endpoint::kLogging, {}, {}};
  return {};
}

std::string_view ExtensionOf(std::string_view target) {
  const std::string_view path = target.substr(0, target.find_first_of("?#"));
  if (path.starts_with("/v2/systemsharedmemory")) return "system_shared_memory";
  if (path.starts_with("/v2/cudasharedmemory")) return "cuda_shared_memory";
  if (path.starts_with("/v2/logging")) return "logging";
  return path.find("/trace/setting") != path.npos ? "trace" : "generate";
}

bool IsOfStreams(Endpoint endpoint) { return endpoint >= Endpoint::kStreams; }

Scope ScopeOf(Endpoint endpoint, Verb verb) {
  switch (endpoint) {
    case Endpoint::kHealthLive:
    case Endpoint::kHealthReady:
    case Endpoint::kUi:          // which holds no data
    case Endpoint::kStreamView:  // and leads there
      return Scope::kOpen;
    case Endpoint::kInfer:
    case Endpoint::kUnsupported:
      return Scope::kInfer;
    case Endpoint::kLoad:
    case Endpoint::kUnload:
    case Endpoint::kRegions:
    case Endpoint::kUnregister:
    case Endpoint::kRegister:
    case Endpoint::kLogging:
      return Scope::kAdmin;
    case Endpoint::kTrace:
    case Endpoint::kStream:
      return verb == Verb::kGet || verb == Verb::kHead ? Scope::kRead : Scope::kAdmin;
    default:
      return Scope::kRead;
  }
}

std::string_view AllowedVerbs(Endpoint endpoint) {
  switch (endpoint) {
    case Endpoint::kInfer:
    case Endpoint::kIndex:
    case Endpoint::kLoad:
    case Endpoint::kUnload:
    case Endpoint::kUnregister:
    case Endpoint::kRegister:
    case Endpoint::kWhatIf:
      return "POST";
    case Endpoint::kLogging:
    case Endpoint::kTrace:
      return "GET, HEAD, POST";
    case Endpoint::kStream:
      return "GET, HEAD, POST, DELETE";
    default:
      return "GET, HEAD";
  }
}

}  // namespace tactus
