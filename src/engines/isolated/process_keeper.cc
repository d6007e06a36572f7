#include "engines/isolated/process_keeper.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "engines/isolated/engine_process.h"

namespace tactus::isolated {
namespace {

using Clock = std::chrono::steady_clock;

// Between two times that a batch is asked to stop: the first may have come before it began.
constexpr std::chrono::milliseconds kAskAgain{20};

// Looks in a row without a sign of life, until a process is suspected to hang, and until it is
// taken to. They are counted, not timed: where the whole machine stands still, no look is made.
constexpr int kLooksUntilSilent = 2;
constexpr int kLooks = 20;

// Why none is started, and those that there are were killed.
constexpr const char* kStopping = "the server is stopping";

// The started process has the cores of the thread that starts it.
class OnCores {
 public:
  explicit OnCores(const std::vector<int>& cores) {
    CPU_ZERO(&before_);
    if (cores.empty() || sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    for (const int core : cores) CPU_SET(static_cast<std::size_t>(core), &wanted);
    changed_ = sched_setaffinity(0, sizeof wanted, &wanted) == 0;
  }
  ~OnCores() {
    if (changed_) sched_setaffinity(0, sizeof before_, &before_);
  }
  OnCores(const OnCores&) = delete;
  OnCores& operator=(const OnCores&) = delete;

 private:
  cpu_set_t before_{};
  bool changed_ = false;
};

Expected<pid_t> StartHere(const std::vector<std::string>& command, int control,
                          const std::vector<int>& cores) {
  const OnCores pinned(cores);
  std::vector<char*> arguments;
  for (const std::string& each : command) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, 2, 1);  // what a library prints is no answer to anybody
  posix_spawn_file_actions_adddup2(&files, control, kControlDescriptor);
  posix_spawn_file_actions_addclosefrom_np(&files, kControlDescriptor + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int failed =
      posix_spawn(&pid, arguments[0], &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed == 0) return pid;
  return Fail(ErrorCode::kUnavailable, fmt::format("an engine's process does not start: {}: {}",
                                                   command[0], std::strerror(failed)));
}

}  // namespace

ProcessKeeper::ProcessKeeper(Duration stop_grace, Duration hang_limit)
    : stop_grace_(stop_grace), hang_limit_(hang_limit), thread_([this] { Run(); }) {}

ProcessKeeper::~ProcessKeeper() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

Expected<pid_t> ProcessKeeper::Spawn(const std::vector<std::string>& command, int control,
                                     const std::vector<int>& cores) {
  std::promise<Expected<pid_t>> started;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return Fail(ErrorCode::kUnavailable, kStopping);
    starts_.push_back([&] { started.set_value(StartHere(command, control, cores)); });
    changed_.notify_all();
  }
  return started.get_future().get();
}

void ProcessKeeper::Watch(EngineProcess& process) {
  const std::lock_guard lock(mutex_);
  watched_.push_back(&process);
  if (closed_) process.Kill(kStopping);
  changed_.notify_all();
}

void ProcessKeeper::Forget(EngineProcess& process) {
  const std::lock_guard lock(mutex_);
  std::erase(watched_, &process);
}

void ProcessKeeper::KillAll() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (EngineProcess* each : watched_) each->Kill(kStopping);
}

ProcessKeeper::Running::Running(ProcessKeeper& keeper, EngineProcess& process, BatchId id)
    : keeper_(keeper), process_(process), id_(id) {
  const std::lock_guard lock(keeper_.mutex_);
  keeper_.running_.push_back(this);
}

ProcessKeeper::Running::~Running() {
  const std::lock_guard lock(keeper_.mutex_);
  std::erase(keeper_.running_, this);
}

bool ProcessKeeper::Running::killed() const {
  const std::lock_guard lock(keeper_.mutex_);
  return killed_;
}

void ProcessKeeper::Stop(BatchId batch) {
  const std::lock_guard lock(mutex_);
  for (Running* each : running_) {
    if (each->id_ != batch || each->asked_) continue;
    each->asked_ = true;
    each->kill_at_ =
        stop_grace_ > Duration{} ? Clock::now() + stop_grace_ : Clock::time_point::max();
    each->process_.Terminate(batch);
    changed_.notify_all();
  }
}

std::optional<Clock::time_point> ProcessKeeper::LookAtStops() {
  const auto now = Clock::now();
  std::optional<Clock::time_point> next;
  for (Running* each : running_) {
    if (!each->asked_ || each->killed_) continue;
    if (now >= each->kill_at_) {
      each->killed_ = true;
      each->process_.Kill("it did not heed a stop");
      continue;
    }
    each->process_.Terminate(each->id_);
    next = now + kAskAgain;
  }
  return next;
}

bool ProcessKeeper::Silent(const EngineProcess& process) {
  return process.unanswered() >= kLooksUntilSilent;
}

std::optional<Clock::time_point> ProcessKeeper::LookForHangs() {
  if (hang_limit_ <= Duration{} || watched_.empty()) return {};
  const auto now = Clock::now();
  if (now < look_at_) return look_at_;
  for (EngineProcess* each : watched_) {
    if (!each->dead() && each->UnansweredLooks() >= kLooks) each->Kill("it gave no sign of life");
  }
  look_at_ = now + hang_limit_ / kLooks;
  return look_at_;
}

void ProcessKeeper::Run() {
  prctl(PR_SET_NAME, "engines");
  std::unique_lock lock(mutex_);
  while (!ends_) {
    for (const auto& start : std::exchange(starts_, {})) {
      lock.unlock();
      start();
      lock.lock();
    }
    auto next = LookAtStops();
    if (const auto look = LookForHangs(); look && (!next || *look < *next)) next = look;
    const auto due = [this, watched = watched_.size()] {
      return ends_ || !starts_.empty() || watched_.size() > watched;
    };
    if (next) {
      changed_.wait_until(lock, *next, due);
    } else {
      changed_.wait(lock, [&] {
        return due() || std::ranges::any_of(running_, [](const Running* each) {
                 return each->asked_ && !each->killed_;
               });
      });
    }
  }
}

}  // namespace tactus::isolated
