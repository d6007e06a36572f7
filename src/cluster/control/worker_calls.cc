#include <chrono>
#include <memory>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "cluster/control/worker.h"
#include "grpc_service.grpc.pb.h"

namespace tactus {
namespace {

constexpr auto kLoadsWithin = std::chrono::minutes(10);
constexpr auto kSaysWithin = std::chrono::seconds(5);

Error ErrorOf(const grpc::Status& status) {
  return {status.error_code() == grpc::StatusCode::UNAVAILABLE ? ErrorCode::kUnavailable
                                                               : ErrorCode::kInternal,
          status.error_message()};
}

}  // namespace

std::filesystem::path AdminSocketIn(const std::filesystem::path& state) {
  return state / "worker.admin" / "socket";
}

Status MakeAdminFolder(const std::filesystem::path& state) {
  const std::filesystem::path folder = AdminSocketIn(state).parent_path();
  std::error_code code;
  std::filesystem::create_directory(folder, code);
  if (!code) std::filesystem::permissions(folder, std::filesystem::perms::owner_all, code);
  if (!code) return {};
  return Fail(ErrorCode::kUnavailable, folder.string() + ": " + code.message());
}

struct WorkerCalls::Body {
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub;
};

WorkerCalls::WorkerCalls(const std::filesystem::path& socket) : body_(std::make_unique<Body>()) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  body_->stub = inference::GRPCInferenceService::NewStub(grpc::CreateCustomChannel(
      "unix:" + socket.string(), grpc::InsecureChannelCredentials(), arguments));
}

WorkerCalls::~WorkerCalls() = default;

Expected<std::vector<std::string>> WorkerCalls::Loaded() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kSaysWithin);
  context.set_wait_for_ready(true);
  inference::RepositoryIndexRequest request;
  inference::RepositoryIndexResponse response;
  request.set_ready(true);
  const grpc::Status status = body_->stub->RepositoryIndex(&context, request, &response);
  if (!status.ok()) return std::unexpected(ErrorOf(status));
  std::vector<std::string> models;
  for (const auto& each : response.models()) models.push_back(each.name());
  return models;
}

Status WorkerCalls::Load(const std::string& model) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLoadsWithin);
  inference::RepositoryModelLoadRequest request;
  inference::RepositoryModelLoadResponse response;
  request.set_model_name(model);
  const grpc::Status status = body_->stub->RepositoryModelLoad(&context, request, &response);
  if (!status.ok()) return std::unexpected(ErrorOf(status));
  return {};
}

Status WorkerCalls::Unload(const std::string& model) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLoadsWithin);
  inference::RepositoryModelUnloadRequest request;
  inference::RepositoryModelUnloadResponse response;
  request.set_model_name(model);
  const grpc::Status status = body_->stub->RepositoryModelUnload(&context, request, &response);
  if (!status.ok()) return std::unexpected(ErrorOf(status));
  return {};
}

Expected<std::vector<std::pair<std::string, std::uint64_t>>> WorkerCalls::Counts() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kSaysWithin);
  inference::ModelStatisticsRequest request;
  inference::ModelStatisticsResponse response;
  const grpc::Status status = body_->stub->ModelStatistics(&context, request, &response);
  if (!status.ok()) return std::unexpected(ErrorOf(status));
  std::vector<std::pair<std::string, std::uint64_t>> counts;
  for (const inference::ModelStatistics& each : response.model_stats()) {
    const auto& ended = each.inference_stats();
    counts.emplace_back(each.name(), each.inference_count() + ended.fail().count());
  }
  return counts;
}

}  // namespace tactus
