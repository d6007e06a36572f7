// Who is let in, over real connections. Without it a stranger's certificate, or another node's,
// could be taken for a peer's.
#include "cluster/tls/peer_tls.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "cluster/tls/authority.h"

namespace tactus {
namespace {

constexpr auto kReached = grpc::StatusCode::UNIMPLEMENTED;  // there, and it knows no method
constexpr auto kRefused = grpc::StatusCode::UNAVAILABLE;

// Listens as node `alpha` of a cluster that has another node `beta`.
class PeerTlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MakeAuthority(folder_.path() / "ours", {"localhost"}));
    ASSERT_TRUE(MakeAuthority(folder_.path() / "theirs", {"localhost"}));
    alpha_ = Node("ours", "alpha");
    beta_ = Node("ours", "beta");
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", alpha_.Listening(), &port_);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  std::filesystem::path FolderOf(const std::string& node) { return folder_.path() / node; }
  PeerTls Node(const std::string& authority, const std::string& node) {
    EXPECT_TRUE(MakeNode(folder_.path() / authority, node, FolderOf(authority + "." + node)));
    auto tls = PeerTls::Open(FolderOf(authority + "." + node), std::chrono::seconds(1));
    EXPECT_TRUE(tls) << tls.error().message;
    return tls.value_or(PeerTls());
  }
  grpc::Status Call(std::shared_ptr<grpc::ChannelCredentials> credentials) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    grpc::GenericStub stub(grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port_),
                                                     std::move(credentials), arguments));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    const grpc::Slice empty;
    const grpc::ByteBuffer nothing(&empty, 1);
    grpc::ByteBuffer answer;
    std::promise<grpc::Status> done;
    stub.UnaryCall(&context, "/some/Method", {}, &nothing, &answer,
                   [&](grpc::Status status) { done.set_value(std::move(status)); });
    return done.get_future().get();
  }

  TemporaryFolder folder_;
  PeerTls alpha_;
  PeerTls beta_;
  grpc::CallbackGenericService service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(PeerTlsTest, ANodeIsNamedByItsCertificate) {
  EXPECT_EQ(alpha_.node(), "alpha");
  EXPECT_EQ(PeerTls::Open(folder_.path() / "ours")->node(), "controller");
  EXPECT_FALSE(PeerTls::Open("")->on());
}

TEST_F(PeerTlsTest, NodesOfOneClusterReachEachOther) {
  EXPECT_EQ(Call(beta_.Towards("alpha")).error_code(), kReached);
  EXPECT_EQ(Call(beta_.Towards("")).error_code(), kReached);
}

TEST_F(PeerTlsTest, AnotherNodeThanTheOneThatWasMeantIsRefused) {
  EXPECT_EQ(Call(beta_.Towards("gamma")).error_code(), kRefused);
}

TEST_F(PeerTlsTest, StrangersAreRefused) {
  EXPECT_EQ(Call(Node("theirs", "beta").Towards("alpha")).error_code(), kRefused);
  EXPECT_EQ(Call(grpc::InsecureChannelCredentials()).error_code(), kRefused);
  // One who trusts this cluster, and shows nothing.
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          (FolderOf("ours.beta") / "authority.pem").string(), 1));
  options.watch_root_certs();
  options.set_certificate_verifier(std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
  options.set_check_call_host(false);
  EXPECT_EQ(Call(grpc::experimental::TlsCredentials(options)).error_code(), kRefused);
}

TEST_F(PeerTlsTest, ARenewedCertificateHoldsWithoutARestart) {
  ASSERT_TRUE(MakeNode(folder_.path() / "ours", "delta", FolderOf("ours.alpha")));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (Call(beta_.Towards("delta")).error_code() != kReached) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << "the new certificate is never shown";
  }
  EXPECT_EQ(Call(beta_.Towards("alpha")).error_code(), kRefused);
}

TEST_F(PeerTlsTest, ANodesCertificateIsItsOwnOfTheAuthorityThereAndOfToday) {
  using std::chrono::days;
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const auto alpha = FolderOf("ours.alpha"), mixed = folder_.path() / "mixed";
  const auto wrong = [&](const std::string& node, std::chrono::sys_seconds at) {
    const Status checked = CheckCertificate(mixed, node, at);
    return checked ? std::string() : checked.error().message;
  };
  EXPECT_NE(wrong("alpha", now).find("authority.pem"), std::string::npos) << "no folder yet";
  std::filesystem::copy(alpha, mixed);
  EXPECT_EQ(wrong("alpha", now), "");
  EXPECT_NE(wrong("beta", now).find("not of node 'beta'"), std::string::npos);
  EXPECT_NE(wrong("alpha", now + days(31)).find("not valid now"), std::string::npos);
  EXPECT_NE(wrong("alpha", now - days(2)).find("not valid now"), std::string::npos);
  const auto overwrite = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(FolderOf("ours.beta") / "node.key", mixed / "node.key", overwrite);
  EXPECT_NE(wrong("alpha", now).find("another key"), std::string::npos);
  std::filesystem::copy_file(alpha / "node.key", mixed / "node.key", overwrite);
  std::filesystem::copy_file(folder_.path() / "theirs" / "authority.pem", mixed / "authority.pem",
                             overwrite);
  EXPECT_NE(wrong("alpha", now).find("another authority"), std::string::npos);
}

TEST_F(PeerTlsTest, AFolderThatIsNoneSaysWhatMakesIt) {
  const auto none = PeerTls::Open(folder_.path() / "none");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("authority.pem"), std::string::npos);
  EXPECT_FALSE(MakeNode(folder_.path() / "ours", "a/b", FolderOf("x")));
  const Status taken = MakeNode(folder_.path() / "ours", "controller", FolderOf("x"));
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find("what all controllers are called"), std::string::npos);
  EXPECT_FALSE(MakeNode(folder_.path() / "none", "a", FolderOf("x")));
  EXPECT_FALSE(MakeNode(folder_.path() / "ours", "a", folder_.path() / "ours"));
}

// Without this a process would say that it is ready, and no other could reach it.
TEST_F(PeerTlsTest, FilesThatDoNotBelongTogetherAreRefused) {
  const auto mixed = folder_.path() / "mixed";
  std::filesystem::copy(FolderOf("ours.alpha"), mixed);
  const auto why = [&] {
    const auto opened = PeerTls::Open(mixed);
    return opened ? std::string() : opened.error().message;
  };
  EXPECT_EQ(why(), "");
  std::filesystem::copy_file(FolderOf("ours.beta") / "node.key", mixed / "node.key",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_NE(why().find("node.pem is of another key than node.key"), std::string::npos);
  std::ofstream(mixed / "node.key") << "garbage";
  EXPECT_NE(why().find("another key than node.key"), std::string::npos);
  std::ofstream(mixed / "authority.pem") << "garbage";
  EXPECT_NE(why().find("authority.pem is no certificate"), std::string::npos);
}

}  // namespace
}  // namespace tactus
