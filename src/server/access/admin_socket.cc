#include "server/access/admin_socket.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace tactus {

Status FitsSocket(const std::filesystem::path& socket) {
  constexpr std::size_t kMostBytes = sizeof(sockaddr_un::sun_path) - 1;
  const std::string path = socket.string();
  if (path.size() <= kMostBytes) return {};
  return InvalidArgument(
      fmt::format("{}: {} bytes, and a socket's path may have {}; choose a shorter one", path,
                  path.size(), kMostBytes));
}

Status CheckAdminSocket(const std::filesystem::path& socket) {
  const auto refuse = [&](const std::string& why) {
    return InvalidArgument("--admin-socket " + why);
  };
  if (const Status fits = FitsSocket(socket); !fits) return refuse(fits.error().message);
  const std::filesystem::path folder = socket.has_parent_path() ? socket.parent_path() : ".";
  struct stat found {};
  if (stat(folder.c_str(), &found) != 0) {
    return refuse(
        fmt::format("{}: {}: {}; make a folder for it that only this user may enter "
                    "(mkdir -m 700)",
                    socket.string(), folder.string(), std::strerror(errno)));
  }
  if (!S_ISDIR(found.st_mode))
    return refuse(fmt::format("{}: {} is not a folder", socket.string(), folder.string()));
  if (found.st_uid != geteuid()) {
    return refuse(fmt::format("{}: {} belongs to another user, who could take the socket's place",
                              socket.string(), folder.string()));
  }
  if ((found.st_mode & 077) != 0) {
    return refuse(
        fmt::format("{}: others may enter {} (mode {:o}), and whoever opens the socket may "
                    "do everything; chmod 700 it",
                    socket.string(), folder.string(), found.st_mode & 0777));
  }
  return {};
}

}  // namespace tactus
