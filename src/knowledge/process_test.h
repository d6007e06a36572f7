// Servers that a test starts for itself: on a free port of 127.0.0.1, in a folder of the test's, as
// a user without rights where the test is root, and gone with the test.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/temporary_folder_test.h"

namespace tactus::knowledge {

// A port that was free a moment ago.
int FreePort();

class ChildProcess {
 public:
  struct As {
    std::string user;  // empty: the test's own
    std::filesystem::path log;
  };
  ChildProcess(const std::vector<std::string>& command, const As& as);
  // Kills it and waits.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  bool Ended();
  int Wait();  // the exit status, or 128 and the signal
  // SIGKILL to it and to its children, at once.
  void KillFamily();
  void Signal(int number);

 private:
  pid_t pid_ = -1;
  int status_ = -1;
};

// A folder in memory, where the system has a file system there, for servers that write much. What
// outlives a killed process on a disk does so here too.
class ServerFolder {
 public:
  ServerFolder();
  ~ServerFolder();
  ServerFolder(const ServerFolder&) = delete;
  ServerFolder& operator=(const ServerFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  TemporaryFolder on_disk_;
  std::filesystem::path path_;
};

// A PostgreSQL of Debian's binaries.
class PostgresServer {
 public:
  // Why none can be started here, for GTEST_SKIP; empty: one can.
  static std::string WhyNot();
  PostgresServer();
  // A new database of that name.
  std::string MakeDatabase(const std::string& name);
  std::string UriOf(const std::string& database) const;
  void Start();
  // kill -9 of the server and of all that it started.
  void Kill() { server_->KillFamily(); }
  ChildProcess& process() { return *server_; }

 private:
  ServerFolder folder_;
  std::string user_;
  int port_ = 0;
  std::unique_ptr<ChildProcess> server_;
};

// An etcd, of .cache/etcd or installed.
class EtcdServer {
 public:
  static std::string WhyNot();
  EtcdServer();
  void Start();
  void Kill() { server_->KillFamily(); }
  ChildProcess& process() { return *server_; }
  std::string endpoint() const;

 private:
  ServerFolder folder_;
  std::string user_;
  int port_ = 0, peer_port_ = 0;
  std::unique_ptr<ChildProcess> server_;
};

}  // namespace tactus::knowledge
