#include "server/access/admin_socket.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/socket.h>
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

Status FreeSocket(const std::filesystem::path& socket) {
  struct stat found {};
  if (lstat(socket.c_str(), &found) != 0) return {};
  if (!S_ISSOCK(found.st_mode)) {
    return InvalidArgument(
        fmt::format("{}: is there, and is no socket; name another path", socket.string()));
  }
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  socket.string().copy(name.sun_path, sizeof name.sun_path - 1);
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool refused = probe >= 0 &&
                       connect(probe, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 &&
                       errno == ECONNREFUSED;
  if (probe >= 0) close(probe);
  if (refused && unlink(socket.c_str()) == 0) return {};
  return Fail(ErrorCode::kUnavailable,
              fmt::format("{}: another server listens there; stop it, or name another path",
                          socket.string()));
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
  if (const Status free = FreeSocket(socket); !free) {
    return Fail(free.error().code, "--admin-socket " + free.error().message);
  }
  return {};
}

}  // namespace tactus
