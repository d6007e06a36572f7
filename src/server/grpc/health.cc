#include "server/grpc/health.h"

#include "health.pb.h"
#include "server/grpc/unary_method.h"

namespace tactus {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

std::string Said(HealthCheckResponse::ServingStatus status) {
  HealthCheckResponse response;
  response.set_status(status);
  return response.SerializeAsString();
}

}  // namespace

Health::Health() : board_(Said(HealthCheckResponse::SERVICE_UNKNOWN)) {}

void Health::Tell(bool ready) {
  for (const char* service : {"", "inference.GRPCInferenceService"}) {
    board_.Tell(service,
                Said(ready ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING));
  }
}

void Health::AddTo(RpcMethods& methods, const CallGate& gate) const {
  methods.emplace("/grpc.health.v1.Health/Check",
                  Unary<HealthCheckRequest, HealthCheckResponse>(
                      gate, kTinyMessage, false,
                      [board = board_](const HealthCheckRequest& request,
                                       HealthCheckResponse& response) -> Status {
                        const auto said = board.Find(request.service());
                        if (!said) return NotFound("this server has no such service");
                        response.ParseFromString(*said);
                        return {};
                      }));
  methods.emplace("/grpc.health.v1.Health/Watch",
                  board_.Watch(kTinyMessage, [](const Message& message) -> Expected<std::string> {
                    HealthCheckRequest request;
                    if (Status fine = ParseMessage(message, request); !fine) {
                      return std::unexpected(std::move(fine.error()));
                    }
                    return request.service();
                  }));
}

}  // namespace tactus
