#include "server/access/admin_socket.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

using std::filesystem::perms;
using testing::HasSubstr;

class AdminSocketTest : public testing::Test {
 protected:
  void SetUp() override { Open(perms::owner_all); }

  void Open(perms mode) {
    std::filesystem::create_directories(folder_.path() / "own");
    std::filesystem::permissions(folder_.path() / "own", mode);
  }
  std::string WhyNot(const std::filesystem::path& socket) const {
    const Status fine = CheckAdminSocket(socket);
    return fine ? "" : fine.error().message;
  }

  TemporaryFolder folder_;
};

TEST_F(AdminSocketTest, MayLieInAFolderOfThisUserAlone) {
  EXPECT_EQ(WhyNot(folder_.path() / "own" / "socket"), "");
}

TEST_F(AdminSocketTest, AFolderThatOthersMayEnterIsRefused) {
  for (const perms others : {perms::group_exec, perms::others_exec, perms::others_read}) {
    Open(perms::owner_all | others);
    EXPECT_THAT(WhyNot(folder_.path() / "own" / "socket"), HasSubstr("chmod 700"));
  }
  Open(perms::owner_all | perms::group_read | perms::group_exec);
  EXPECT_THAT(WhyNot(folder_.path() / "own" / "socket"), HasSubstr("(mode 750)"));
}

TEST_F(AdminSocketTest, AFolderThatIsNoneIsRefused) {
  EXPECT_THAT(WhyNot(folder_.path() / "none" / "socket"), HasSubstr("No such file or directory"));
  EXPECT_THAT(WhyNot(folder_.path() / "none" / "socket"), HasSubstr("mkdir -m 700"));
  EXPECT_THAT(WhyNot("/dev/null/socket"), HasSubstr("/dev/null is not a folder"));
}

// Without this a second server took the socket of a living one, and removed it at its end.
TEST_F(AdminSocketTest, WhereAServerListensNoOtherMay) {
  const auto path = folder_.path() / "own" / "socket";
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  path.string().copy(name.sun_path, sizeof name.sun_path - 1);
  ASSERT_EQ(bind(socket, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(listen(socket, 1), 0);
  EXPECT_THAT(WhyNot(path), HasSubstr("another server listens there"));
  EXPECT_TRUE(std::filesystem::exists(path));
  close(socket);  // as one that is killed leaves it
  EXPECT_EQ(WhyNot(path), "");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(AdminSocketTest, WhatIsNoSocketIsNotRemoved) {
  const auto path = folder_.path() / "own" / "file";
  std::ofstream(path) << "x";
  EXPECT_THAT(WhyNot(path), HasSubstr("no socket"));
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(AdminSocketTest, APathThatASocketCannotHaveIsRefused) {
  const std::string why = WhyNot(folder_.path() / "own" / std::string(100, 's'));
  EXPECT_THAT(why, HasSubstr("a socket's path may have 107"));
  EXPECT_THAT(why, HasSubstr("choose a shorter one"));
}

}  // namespace
}  // namespace tactus
