// Every method with every token, over TLS and in the clear: without this table a service that is
// added (or one of gRPC's own) may be open to all.
#include "server/access/access.h"

#include <string>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "server/access/pki_for_test.h"
#include "server/access/watched_file.h"
#include "server/grpc/method_scope.h"
#include "server/grpc/server_fixture_for_test.h"

namespace tactus {
namespace {

class GrpcAccessTest : public testing::Test {
 protected:
  void SetUp() override {
    MakeCertificate(folder_.path(), "a");
    MakeCertificate(folder_.path(), "b");
    WriteText(folder_ / "tokens",
              "r read read-0123456789abcdef\ni infer infer-0123456789abcdef\n"
              "a admin admin-0123456789abcdef\n");
  }

  void Serve(AccessOptions options) {
    auto access = Access::Open(std::move(options), [](const std::string&) {});
    ASSERT_TRUE(access.has_value()) << access.error().message;
    access_ = *access;
    server_.emplace(GrpcOptions{.port = 0, .access = access_}, service_);
    const auto port = server_->Start();
    ASSERT_TRUE(port.has_value()) << port.error().message;
    target_ = "127.0.0.1:" + std::to_string(*port);
  }
  TlsFiles Tls(const char* client_ca = nullptr) const {
    return {folder_ / "a.pem", folder_ / "a.key",
            client_ca == nullptr ? std::filesystem::path() : folder_ / client_ca};
  }
  std::string Text(const char* name) const {
    return ReadSmallFile(folder_ / name).value_or("unreadable");
  }

  // A connection of its own for each call.
  grpc::StatusCode Call(const std::string& method, std::string_view scope,
                        std::shared_ptr<grpc::ChannelCredentials> credentials = nullptr) {
    if (credentials == nullptr) credentials = grpc::InsecureChannelCredentials();
    grpc::ChannelArguments args;
    args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    grpc::GenericStub stub(grpc::CreateCustomChannel(target_, credentials, args));
    grpc::ClientContext context;
    Bound(context);
    if (!scope.empty()) {
      context.AddMetadata("authorization", "Bearer " + std::string(scope) + "-0123456789abcdef");
    }
    grpc::CompletionQueue queue;
    const grpc::Slice empty;
    const grpc::ByteBuffer none(&empty, 1);
    const auto call = stub.PrepareUnaryCall(&context, method, none, &queue);
    call->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status.error_code();
  }
  std::shared_ptr<grpc::ChannelCredentials> Trusting(const char* authority,
                                                     const std::string& own = "") const {
    grpc::SslCredentialsOptions options{.pem_root_certs = Text(authority)};
    if (!own.empty()) {
      options.pem_private_key = Text((own + ".key").c_str());
      options.pem_cert_chain = Text((own + ".pem").c_str());
    }
    return grpc::SslCredentials(options);
  }

  const TemporaryFolder folder_;
  ScriptedService service_;
  std::shared_ptr<Access> access_;
  std::optional<GrpcServer> server_;
  std::string target_;
};

TEST_F(GrpcAccessTest, EveryMethodByEveryScope) {
  Serve({.tls = {}, .tokens = folder_ / "tokens"});
  const std::string kserve = "/inference.GRPCInferenceService/";
  const std::pair<std::string, std::string_view> table[] = {
      {"/grpc.health.v1.Health/Check", ""},
      {kserve + "ServerLive", ""},
      {kserve + "ServerReady", ""},
      {kserve + "ServerMetadata", "read"},
      {kserve + "ModelReady", "read"},
      {kserve + "ModelMetadata", "read"},
      {kserve + "ModelConfig", "read"},
      {kserve + "ModelStatistics", "read"},
      {kserve + "RepositoryIndex", "read"},
      {"/externalscaler.ExternalScaler/IsActive", "read"},
      {"/no.such.Service/Method", "read"},
      {kserve + "ModelInfer", "infer"},
      {kserve + "RepositoryModelLoad", "admin"},
      {kserve + "RepositoryModelUnload", "admin"},
      {kserve + "TraceSetting", "admin"},
      {kserve + "LogSettings", "admin"},
      {kserve + "SystemSharedMemoryRegister", "admin"},
      {kserve + "CudaSharedMemoryStatus", "admin"},
  };
  using grpc::StatusCode;
  for (const auto& [method, needs] : table) {
    for (const std::string_view scope : {"", "unknown", "read", "infer", "admin"}) {
      const StatusCode code = Call(method, scope);
      const bool known = !scope.empty() && scope != "unknown";
      const StatusCode refusal = needs.empty() || scope == needs ? StatusCode::OK
                                 : known                         ? StatusCode::PERMISSION_DENIED
                                                                 : StatusCode::UNAUTHENTICATED;
      const bool refused =
          code == StatusCode::PERMISSION_DENIED || code == StatusCode::UNAUTHENTICATED;
      EXPECT_EQ(refused ? code : StatusCode::OK, refusal) << method << " with '" << scope << "'";
    }
  }
  EXPECT_EQ(ScopeOfMethod(kserve + "ModelStreamInfer"), Scope::kInfer);
  EXPECT_EQ(ScopeOfMethod("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"),
            Scope::kRead);
}

TEST_F(GrpcAccessTest, TlsKeepsOthersOut) {
  Serve({.tls = Tls(), .tokens = folder_ / "tokens"});
  const std::string method = "/inference.GRPCInferenceService/ServerMetadata";
  EXPECT_EQ(Call(method, "read", Trusting("a.pem")), grpc::StatusCode::OK);
  EXPECT_EQ(Call(method, "", Trusting("a.pem")), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Call(method, "read", Trusting("b.pem")), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Call(method, "read"), grpc::StatusCode::UNAVAILABLE) << "in the clear";
}

TEST_F(GrpcAccessTest, ARenewedCertificateHoldsForNewConnections) {
  Serve({.tls = Tls(), .tokens = {}});
  const std::string method = "/inference.GRPCInferenceService/ServerLive";
  EXPECT_EQ(Call(method, "", Trusting("a.pem")), grpc::StatusCode::OK);
  std::filesystem::rename(folder_ / "b.pem", folder_ / "a.pem");
  access_->Refresh();  // half a renewal: the old one serves on
  EXPECT_EQ(Call(method, "", Trusting("a.pem")), grpc::StatusCode::UNAVAILABLE);
  std::filesystem::rename(folder_ / "b.key", folder_ / "a.key");
  access_->Refresh();
  EXPECT_EQ(Call(method, "", Trusting("a.pem")), grpc::StatusCode::OK);
}

TEST_F(GrpcAccessTest, OnlyClientsOfTheAuthority) {
  Serve({.tls = Tls("b.pem"), .tokens = {}});
  const std::string method = "/inference.GRPCInferenceService/ServerLive";
  EXPECT_EQ(Call(method, "", Trusting("a.pem", "b")), grpc::StatusCode::OK);
  EXPECT_EQ(Call(method, "", Trusting("a.pem", "a")), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Call(method, "", Trusting("a.pem")), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace tactus
