#include "server/access/admin_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST_F(AdminSocketTest, APathThatASocketCannotHaveIsRefused) {
  const std::string why = WhyNot(folder_.path() / "own" / std::string(100, 's'));
  EXPECT_THAT(why, HasSubstr("a socket's path may have 107"));
  EXPECT_THAT(why, HasSubstr("choose a shorter one"));
}

}  // namespace
}  // namespace tactus
