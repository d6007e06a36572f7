#include "cluster/control/enrolment.h"

#include <chrono>
#include <utility>

#include "base/whole_file.h"
#include "cluster/tls/authority.h"

namespace tactus {
namespace {

// Strangers may ask: so many at once.
constexpr int kMostWaitingJoins = 64;

std::chrono::sys_seconds SystemNow() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

}  // namespace

Enrolment::Enrolment(EnrolmentOptions options, Log log)
    : options_(std::move(options)), log_(std::move(log)), joins_("joins", kMostWaitingJoins) {}

void Enrolment::Ask(JoinCall call, std::function<void(Expected<Joined>)> answer) {
  const bool taken =
      joins_.Post([this, call = std::move(call), answer](bool) { answer(Join(call)); });
  if (!taken) answer(Fail(ErrorCode::kUnavailable, "too many ask to join at once; try again"));
}

Expected<Joined> Enrolment::Join(const JoinCall& call) {
  if (options_.authority.empty()) {
    return InvalidArgument("this controller has no authority (--tls)");
  }
  const bool renews = call.token.empty() && !call.peer.empty();
  auto certificate = renews ? Renewed(call) : Admitted(call);
  auto authority = ReadWhole(options_.authority / "authority.pem", "authority");
  if (certificate && !authority) certificate = std::unexpected(authority.error());
  if (!certificate) {
    log_((renews ? "the certificate of " + call.peer + " was not renewed: "
                 : "a node was not admitted: ") +
         certificate.error().message);
    return std::unexpected(std::move(certificate.error()));
  }
  log_("node " + (renews ? call.peer + " has renewed its certificate"
                         : NodeOfToken(call.token) + " has joined"));
  return Joined{*std::move(certificate), *std::move(authority)};
}

Expected<std::string> Enrolment::Renewed(const JoinCall& call) const {
  if (!options_.nodes.contains(call.peer)) {
    return InvalidArgument("the fleet has no device '" + call.peer + "'");
  }
  return SignNode(options_.authority, call.peer, call.request);
}

Expected<std::string> Enrolment::Admitted(const JoinCall& call) const {
  const auto token = ReadToken(options_.authority, call.token, SystemNow());
  if (!token) return std::unexpected(token.error());
  const auto key = SumOfKey(call.request);
  if (!key) return std::unexpected(key.error());
  if (!options_.use) return InvalidArgument("this controller takes no tokens");
  if (const Status used = options_.use(*token, *key); !used) {
    switch (used.error().code) {
      case ErrorCode::kAlreadyExists:
        return InvalidArgument("the token of node '" + token->node +
                               "' was used before; tactus cluster token makes another");
      case ErrorCode::kInvalidArgument:
        return std::unexpected(used.error());
      default:
        return Fail(ErrorCode::kUnavailable,
                    "it cannot be determined whether the token was used: " + used.error().message);
    }
  }
  return SignNode(options_.authority, token->node, call.request);
}

}  // namespace tactus
