#include "server/grpc/reflection.h"

#include <memory>
#include <set>
#include <string>
#include <utility>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include "reflection.pb.h"
#include "server/grpc/unary_method.h"

namespace tactus {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

// Answers that a client has not taken, before its next question is read.
constexpr std::size_t kMostUnsent = 16;

constexpr int kNotFound = 5;  // of gRPC's status codes

void AddFile(const FileDescriptor& file, std::set<const FileDescriptor*>& known,
             ServerReflectionResponse& response) {
  if (!known.insert(&file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  response.mutable_file_descriptor_response()->add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) {
    AddFile(*file.dependency(i), known, response);
  }
}

ServerReflectionResponse AnswerTo(const ServerReflectionRequest& request,
                                  const std::set<std::string>& services) {
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const FileDescriptor* file = nullptr;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kListServices:
      for (const std::string& service : services) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      return response;
    case ServerReflectionRequest::kFileByFilename:
      file = pool.FindFileByName(request.file_by_filename());
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      file = pool.FindFileContainingSymbol(request.file_containing_symbol());
      break;
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      // There are no extensions.
      if (pool.FindMessageTypeByName(request.all_extension_numbers_of_type()) != nullptr) {
        response.mutable_all_extension_numbers_response()->set_base_type_name(
            request.all_extension_numbers_of_type());
        return response;
      }
      break;
    default:
      break;
  }
  if (file != nullptr) {
    std::set<const FileDescriptor*> known;
    AddFile(*file, known, response);
    return response;
  }
  response.mutable_error_response()->set_error_code(kNotFound);
  response.mutable_error_response()->set_error_message("this server has no such thing");
  return response;
}

class ReflectionMethod final : public CallMethod {
 public:
  ReflectionMethod(std::shared_ptr<const std::set<std::string>> services,
                   std::shared_ptr<ServerCall> call)
      : services_(std::move(services)), call_(std::move(call)) {}

  Admission Admit(std::size_t, std::span<const std::byte>) override { return Admission::kRead; }
  bool Takes() const override { return unsent_ < kMostUnsent; }
  void OnMessage(Message message) override {
    ServerReflectionRequest request;
    Status fine = message.packed ? Fail(ErrorCode::kUnimplemented, "this request may not be packed")
                                 : ParseMessage(message, request);
    if (!fine) return call_->End(EndOf(fine, false));
    OutMessage out;
    out.Add(AnswerTo(request, *services_).SerializeAsString());
    ++unsent_;
    call_->Send(std::move(out));
  }
  void OnNoMore(bool) override { call_->End({}); }
  void OnSent() override {
    unsent_ = 0;
    call_->ReadOn();
  }

 private:
  const std::shared_ptr<const std::set<std::string>> services_;
  const std::shared_ptr<ServerCall> call_;
  std::size_t unsent_ = 0;
};

}  // namespace

void AddReflection(RpcMethods& methods) {
  constexpr const char* kName = "grpc.reflection.v1alpha.ServerReflection";
  auto services = std::make_shared<std::set<std::string>>();
  services->insert(kName);
  for (const auto& [path, method] : methods) services->insert(path.substr(1, path.rfind('/') - 1));
  methods.emplace(
      std::string("/") + kName + "/ServerReflectionInfo",
      RpcMethod{
          .most_bytes = kTinyMessage,
          .waits = true,
          .begin = [services](std::shared_ptr<ServerCall> call) -> std::shared_ptr<CallMethod> {
            return std::make_shared<ReflectionMethod>(services, std::move(call));
          }});
}

}  // namespace tactus
