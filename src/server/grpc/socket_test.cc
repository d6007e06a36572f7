// A server on a Unix socket: for whoever may open its file.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/temporary_folder_test.h"
#include "server/access/admin_socket.h"
#include "server/grpc/server_fixture_for_test.h"

namespace tactus {
namespace {

grpc::Status Live(const std::string& target) {
  const auto stub = inference::GRPCInferenceService::NewStub(
      grpc::CreateChannel(target, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  Bound(context);
  const inference::ServerLiveRequest request;
  inference::ServerLiveResponse response;
  return stub->ServerLive(&context, request, &response);
}

TEST(GrpcSocket, ServesUntilItStopsAndLeavesNoFile) {
  const TemporaryFolder folder;
  const std::filesystem::path socket = folder.path() / "socket";
  ScriptedService service;
  for (int life = 0; life < 2; ++life) {
    GrpcServer server({.address = GrpcAddressOf(socket)}, service);
    const auto port = server.Start();
    ASSERT_TRUE(port.has_value()) << port.error().message;
    EXPECT_EQ(*port, 0);
    EXPECT_TRUE(Live(GrpcAddressOf(socket)).ok());
    server.Stop(std::chrono::seconds(1));
    EXPECT_FALSE(std::filesystem::exists(socket));
  }
}

TEST(GrpcSocket, OneThatAKilledServerLeftIsTakenOver) {
  const TemporaryFolder folder;
  const std::filesystem::path socket = folder.path() / "socket";
  const int left = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  socket.string().copy(name.sun_path, sizeof name.sun_path - 1);
  ASSERT_EQ(bind(left, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  close(left);
  ScriptedService service;
  GrpcServer server({.address = GrpcAddressOf(socket)}, service);
  ASSERT_TRUE(server.Start().has_value());
  EXPECT_TRUE(Live(GrpcAddressOf(socket)).ok());
}

// Without this a server that stopped took the socket of the next one with it.
TEST(GrpcSocket, ThatOfALivingServerStaysItsOwn) {
  const TemporaryFolder folder;
  const std::filesystem::path socket = folder.path() / "socket";
  ScriptedService service;
  GrpcServer first({.address = GrpcAddressOf(socket)}, service);
  ASSERT_TRUE(first.Start().has_value());
  {
    GrpcServer second({.address = GrpcAddressOf(socket)}, service);
    const auto port = second.Start();
    ASSERT_FALSE(port.has_value());
    EXPECT_THAT(port.error().message, testing::HasSubstr("another server listens there"));
  }
  EXPECT_TRUE(Live(GrpcAddressOf(socket)).ok());
  std::filesystem::remove(socket);
  GrpcServer next({.address = GrpcAddressOf(socket)}, service);
  ASSERT_TRUE(next.Start().has_value());
  first.Stop(std::chrono::seconds(1));
  EXPECT_TRUE(std::filesystem::exists(socket));
  EXPECT_TRUE(Live(GrpcAddressOf(socket)).ok());
}

TEST(GrpcSocket, AFolderThatIsNotThereIsNamed) {
  const TemporaryFolder folder;
  ScriptedService service;
  GrpcServer server({.address = GrpcAddressOf(folder.path() / "none" / "socket")}, service);
  const auto port = server.Start();
  ASSERT_FALSE(port.has_value());
  EXPECT_EQ(port.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(port.error().message, testing::HasSubstr("/none/socket"));
}

}  // namespace
}  // namespace tactus
