#include "knowledge/process_test.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/source_path_for_test.h"

namespace tactus::knowledge {
namespace {

const std::filesystem::path kPostgresBin = "/usr/lib/postgresql/15/bin";
constexpr const char* kUser = "tactus";  // of the database
constexpr int kTurns = 3'000;            // turns of kPause
constexpr int kPauseMillis = 20;

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool Listens(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = Loopback(port);
  const int result = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::close(socket);
  return result == 0;
}

void Pause() { ::poll(nullptr, 0, kPauseMillis); }

std::string TailOf(const std::filesystem::path& log) {
  std::ifstream file(log);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.size() > 2'000 ? text.substr(text.size() - 2'000) : text;
}

// What a child needs to become that user. It is found before the fork: other threads of the test
// may hold the locks of malloc and of getpwnam at that moment, and no child would ever get them.
struct Account {
  uid_t user = 0;
  gid_t group = 0;
  std::vector<gid_t> groups;
};

std::optional<Account> AccountOf(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const passwd* user = ::getpwnam(name.c_str());
  if (!user) throw std::runtime_error("no user " + name);
  Account account{.user = user->pw_uid, .group = user->pw_gid, .groups = {}};
  int count = 0;
  ::getgrouplist(name.c_str(), account.group, nullptr, &count);
  account.groups.resize(static_cast<std::size_t>(count));
  ::getgrouplist(name.c_str(), account.group, account.groups.data(), &count);
  return account;
}

// In a child, between fork and exec: system calls only.
void Become(const std::optional<Account>& account) {
  if (!account) return;
  if (::setgroups(account->groups.size(), account->groups.data()) != 0 ||
      ::setgid(account->group) != 0 || ::setuid(account->user) != 0) {
    ::_exit(126);
  }
}

// Whether that user gets as far as the program: a folder above it may be closed to others.
bool Reaches(const std::string& user, const std::filesystem::path& program) {
  const std::optional<Account> account = AccountOf(user);
  const pid_t child = ::fork();
  if (child == 0) {
    Become(account);
    ::_exit(::chdir("/") == 0 && ::access(program.c_str(), X_OK) == 0 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// A user without rights that can run it, where the test is root; empty: there is none, or none is
// needed.
std::string UserFor(const std::filesystem::path& program) {
  if (::geteuid() != 0) return "";
  for (const char* name : {"postgres", "nobody"}) {
    if (::getpwnam(name) && Reaches(name, program)) return name;
  }
  return "";
}

void GiveTo(const std::string& user, const std::filesystem::path& folder) {
  if (user.empty()) return;
  const passwd* owner = ::getpwnam(user.c_str());
  if (::chown(folder.c_str(), owner->pw_uid, owner->pw_gid) != 0) {
    throw std::runtime_error("chown of " + folder.string());
  }
}

std::vector<pid_t> ChildrenOf(pid_t parent) {
  const std::string pid = std::to_string(parent);
  std::ifstream file("/proc/" + pid + "/task/" + pid + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

std::filesystem::path EtcdProgram() {
  const std::filesystem::path fetched = std::filesystem::path(kSourceDir) / ".cache/etcd/etcd";
  for (const auto& program : {fetched, std::filesystem::path("/usr/bin/etcd")}) {
    if (std::filesystem::exists(program)) return program;
  }
  return {};
}

}  // namespace

int FreePort() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  if (::bind(socket, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no free port on 127.0.0.1");
  }
  ::close(socket);
  return ntohs(address.sin_port);
}

ChildProcess::ChildProcess(const std::vector<std::string>& command, const As& as) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const std::optional<Account> account = AccountOf(as.user);
  pid_ = ::fork();
  if (pid_ != 0) return;
  const int log = ::open(as.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  Become(account);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::chdir("/") != 0) ::_exit(126);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

ChildProcess::~ChildProcess() {
  if (!Ended()) KillFamily();
}

bool ChildProcess::Ended() {
  if (status_ < 0) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
  }
  return status_ >= 0;
}

int ChildProcess::Wait() {
  while (!Ended()) Pause();
  return status_;
}

void ChildProcess::KillFamily() {
  const std::vector<pid_t> children = ChildrenOf(pid_);
  Signal(SIGKILL);
  for (const pid_t child : children) ::kill(child, SIGKILL);
  Wait();
}

void ChildProcess::Signal(int number) { ::kill(pid_, number); }

ServerFolder::ServerFolder() : path_(on_disk_.path()) {
  // Of a server 50 MB, and some run at once; a container may have 64 MB there.
  constexpr std::uintmax_t kEnough = 1U << 30U;
  std::string made = "/dev/shm/tactus_test_XXXXXX";
  std::error_code absent;
  const auto space = std::filesystem::space("/dev/shm", absent);
  if (!absent && space.available >= kEnough && ::mkdtemp(made.data())) path_ = made;
}

ServerFolder::~ServerFolder() {
  std::error_code left;  // nothing to be done about it
  std::filesystem::remove_all(path_, left);
}

std::string PostgresServer::WhyNot() {
#ifndef TACTUS_HAVE_LIBPQ
  return "this build has no libpq";
#endif
  if (!std::filesystem::exists(kPostgresBin / "postgres")) {
    return "no PostgreSQL 15 in " + kPostgresBin.string() + "; ./run test installs it";
  }
  if (::geteuid() == 0 && UserFor(kPostgresBin / "postgres").empty()) {
    return "PostgreSQL refuses root, and neither a user 'postgres' nor 'nobody' gets to " +
           kPostgresBin.string() + ": is / or a folder on the way closed to others?";
  }
  return "";
}

PostgresServer::PostgresServer() : user_(UserFor(kPostgresBin / "postgres")) {
  GiveTo(user_, folder_.path());
  ChildProcess init({kPostgresBin / "initdb", "-D", folder_ / "data", "-U", kUser, "-A", "trust",
                     "-E", "UTF8", "--no-locale", "--no-sync", "--wal-segsize=1"},
                    {user_, folder_ / "initdb.log"});
  if (init.Wait() != 0) throw std::runtime_error("initdb: " + TailOf(folder_ / "initdb.log"));
  port_ = FreePort();
  Start();
}

void PostgresServer::Start() {
  // In memory and without fsync: what a process wrote outlives its own death. Only a power cut
  // would take it, and no test cuts the power.
  const std::filesystem::path log = folder_ / "server.log";
  const std::vector<std::string> command = {kPostgresBin / "postgres",
                                            "-D",
                                            folder_ / "data",
                                            "-p",
                                            std::to_string(port_),
                                            "-k",
                                            folder_.path().string(),
                                            "-c",
                                            "listen_addresses=127.0.0.1",
                                            "-c",
                                            "fsync=off"};
  // A server that was killed may leave shared memory for a moment, in which it does not start.
  for (int turn = 0; turn < kTurns; ++turn) {
    if (!server_ || server_->Ended()) {
      server_ = std::make_unique<ChildProcess>(command, ChildProcess::As{user_, log});
    }
    Pause();
    ChildProcess ready({kPostgresBin / "pg_isready", "-q", "-h", "127.0.0.1", "-p",
                        std::to_string(port_), "-d", "postgres", "-U", kUser},
                       {user_, folder_ / "ready.log"});
    if (ready.Wait() == 0) return;
  }
  throw std::runtime_error("PostgreSQL did not start: " + TailOf(log));
}

std::string PostgresServer::MakeDatabase(const std::string& name) {
  ChildProcess made({kPostgresBin / "createdb", "-h", "127.0.0.1", "-p", std::to_string(port_),
                     "-U", kUser, name},
                    {user_, folder_ / "createdb.log"});
  if (made.Wait() != 0) throw std::runtime_error("createdb: " + TailOf(folder_ / "createdb.log"));
  return UriOf(name);
}

std::string PostgresServer::UriOf(const std::string& database) const {
  return "postgresql://" + std::string(kUser) + "@127.0.0.1:" + std::to_string(port_) + "/" +
         database;
}

std::string EtcdServer::WhyNot() {
  return EtcdProgram().empty() ? "no etcd in .cache/etcd or /usr/bin; ./run test fetches it" : "";
}

EtcdServer::EtcdServer()
    : user_(UserFor(EtcdProgram())), port_(FreePort()), peer_port_(FreePort()) {
  GiveTo(user_, folder_.path());
  Start();
}

std::string EtcdServer::endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }

void EtcdServer::Start() {
  const std::string peer = "http://127.0.0.1:" + std::to_string(peer_port_);
  // Raft among one: short timers make it lead at once, and leases expire when they say.
  server_ = std::make_unique<ChildProcess>(std::vector<std::string>{EtcdProgram(),
                                                                    "--name",
                                                                    "one",
                                                                    "--data-dir",
                                                                    folder_ / "data",
                                                                    "--listen-client-urls",
                                                                    endpoint(),
                                                                    "--advertise-client-urls",
                                                                    endpoint(),
                                                                    "--listen-peer-urls",
                                                                    peer,
                                                                    "--initial-advertise-peer-urls",
                                                                    peer,
                                                                    "--initial-cluster",
                                                                    "one=" + peer,
                                                                    "--heartbeat-interval",
                                                                    "20",
                                                                    "--election-timeout",
                                                                    "200",
                                                                    "--logger",
                                                                    "zap"},
                                           ChildProcess::As{user_, folder_ / "etcd.log"});
  for (int turn = 0; turn < kTurns && !Listens(port_); ++turn) {
    if (server_->Ended()) throw std::runtime_error("etcd: " + TailOf(folder_ / "etcd.log"));
    Pause();
  }
}

// A child that waits for a lock that another thread held at the fork waits for ever.
TEST(ChildProcess, StartsWhileOtherThreadsAllocateAndAskForUsers) {
  const std::filesystem::path program = "/bin/true";
  const ServerFolder folder;
  const std::string user = UserFor(program);
  GiveTo(user, folder.path());
  std::atomic<bool> ending = false;
  std::vector<std::jthread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&] {
      std::string names;
      passwd entry{}, *found = nullptr;
      while (!ending) {
        names = std::string(4'096, '\0');
        ::getpwnam_r("root", &entry, names.data(), names.size(), &found);
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(ChildProcess({program}, {user, folder / "log"}).Wait(), 0);
  }
  ending = true;
}

}  // namespace tactus::knowledge
