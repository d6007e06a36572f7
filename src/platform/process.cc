#include "platform/process.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

namespace tactus {
namespace {

constexpr std::chrono::milliseconds kLook{20};

// Field 22 of /proc/PID/stat; 0: there is no such process, or it has ended and was not waited for.
std::uint64_t StartOf(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto name_end = text.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return 0;
  if (text[name_end + 2] == 'Z' || text[name_end + 2] == 'X') return 0;
  std::size_t at = name_end + 2;
  constexpr int kFieldsBefore = 19;  // from the state on
  for (int i = 0; i < kFieldsBefore && at != std::string::npos; ++i) at = text.find(' ', at + 1);
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at, nullptr, 10);
}

}  // namespace

Expected<ProcessIdentity> StartProcess(const std::vector<std::string>& command,
                                       const std::filesystem::path& log) {
  const int output = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (output < 0 || input < 0) {
    return Fail(ErrorCode::kUnavailable, log.string() + ": " + std::strerror(errno));
  }
  std::vector<char*> arguments;
  for (const std::string& each : command) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  int said[2];  // the child's errno, if it could not become the program
  if (pipe2(said, O_CLOEXEC) != 0) return Fail(ErrorCode::kUnavailable, std::strerror(errno));
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    dup2(input, 0);
    dup2(output, 1);
    dup2(output, 2);
    execv(arguments[0], arguments.data());
    const int failed = errno;
    (void)!write(said[1], &failed, sizeof failed);
    _exit(127);
  }
  const int fork_failed = errno;
  close(said[1]);
  close(output);
  close(input);
  int failed = 0;
  const bool told = child > 0 && read(said[0], &failed, sizeof failed) > 0;
  close(said[0]);
  if (child < 0) return Fail(ErrorCode::kUnavailable, std::strerror(fork_failed));
  if (told) {
    waitpid(child, nullptr, 0);
    return Fail(ErrorCode::kUnavailable, command[0] + ": " + std::strerror(failed));
  }
  return ProcessIdentity{child, StartOf(child)};
}

bool Runs(const ProcessIdentity& process) {
  if (process.pid <= 0) return false;
  waitpid(process.pid, nullptr, WNOHANG);  // if it is a child
  const std::uint64_t started = StartOf(process.pid);
  return started != 0 && started == process.started;
}

bool EndsWithin(const ProcessIdentity& process, std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0));
  // Opened before it is looked at: the number cannot become another process's in between.
  if (descriptor >= 0 && Runs(process)) {
    pollfd ended{descriptor, POLLIN, 0};
    poll(&ended, 1, static_cast<int>(time.count()));
  }
  if (descriptor >= 0) close(descriptor);
  while (Runs(process)) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

void AskToStop(const ProcessIdentity& process) {
  if (Runs(process)) kill(process.pid, SIGTERM);
}

void StopProcess(const ProcessIdentity& process, std::chrono::milliseconds grace) {
  AskToStop(process);
  if (EndsWithin(process, grace)) return;
  kill(process.pid, SIGKILL);
  EndsWithin(process, grace);
}

std::uint64_t UniqueNumber() {
  std::uint64_t number = 0;
  while (number == 0) {
    const bool drawn = getrandom(&number, sizeof number, 0) == sizeof number;
    CHECK(drawn, "the kernel gives eight bytes at once");
  }
  return number;
}

std::size_t RaiseDescriptorLimit() {
  rlimit limit{};
  constexpr std::size_t kFew = 1024;  // what the system gives where it does not say
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kFew;
  if (limit.rlim_cur < limit.rlim_max) {
    const rlimit most{limit.rlim_max, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &most) == 0) limit = most;
  }
  return limit.rlim_cur;
}

std::filesystem::path ThisProgram() {
  std::error_code code;
  return std::filesystem::read_symlink("/proc/self/exe", code);
}

Expected<FolderLock> FolderLock::Take(const std::filesystem::path& folder) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  const std::filesystem::path path = folder / "lock";
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return Fail(ErrorCode::kUnavailable, path.string() + ": " + std::strerror(errno));
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return FolderLock(file);
  close(file);
  return Fail(ErrorCode::kAlreadyExists,
              folder.string() +
                  ": another process holds this folder of state; stop it, or name "
                  "another folder with --state");
}

FolderLock::~FolderLock() {
  if (file_ >= 0) close(file_);
}

}  // namespace tactus
