// A server on a Unix socket: for whoever may open its file.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  ScriptedService service;
  GrpcServer left({.address = GrpcAddressOf(socket)}, service);
  ASSERT_TRUE(left.Start().has_value());
  GrpcServer server({.address = GrpcAddressOf(socket)}, service);
  ASSERT_TRUE(server.Start().has_value());
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
