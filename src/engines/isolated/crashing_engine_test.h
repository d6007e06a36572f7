// For tests of isolated engines: an engine that answers with its input and dies as the input says.
// The test program itself is the process that it runs in (process_test.cc).
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <thread>

#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include "core/engine.h"
#include "engines/registry.h"

namespace tactus::testing {

inline constexpr char kCrashingEngine[] = "crashing";
inline constexpr char kDiesLoading[] = "dies loading";  // a model's name
// As a program's first argument: it makes an engine, says the number of its process on the
// descriptor of the second argument, and waits to be killed.
inline constexpr char kServerToKill[] = "server-to-kill";

// What the first number of a batch may ask for.
inline constexpr std::int64_t kDivide = -1;
inline constexpr std::int64_t kTouchNothing = -2;
inline constexpr std::int64_t kKilled = -3;
inline constexpr std::int64_t kLeave = -4;
inline constexpr std::int64_t kForEver = -5;
inline constexpr std::int64_t kSayProcess = -6;

inline constexpr std::int64_t kLeaveMemory = -7;  // to be given back at rest

inline constexpr std::uint64_t kArenaBytes = 1000;  // that it says to have

// As proc(5) names it; empty: there is no such process.
inline std::string StateOf(pid_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string number, name, state;
  stat >> number >> name >> state;
  return state;
}

// Not a zombie.
inline bool Running(pid_t process) {
  const std::string state = StateOf(process);
  return !state.empty() && state != "Z" && state != "X";
}

inline void StandStill(pid_t process) {
  kill(process, SIGSTOP);
  while (StateOf(process) != "T") std::this_thread::yield();
}

class CrashingEngine final : public Engine {
 public:
  EngineTraits traits() const override { return {.name = kCrashingEngine}; }
  Expected<ModelHandle> Load(ModelSpec& spec, const LaneSpec& lane) override {
    if (spec.name == kDiesLoading) Obey(kDivide);
    return identity_->Load(spec, lane);
  }
  void Unload(ModelHandle handle) override { identity_->Unload(handle); }
  // Version 2 once it has given back what a run had left.
  std::vector<ArenaUse> Arenas() const override {
    return {{"numbers", gave_back_ ? 2 : 1, kArenaBytes, 1}};
  }
  bool GiveBackAtRest() override {
    const bool any = left_.exchange(false);
    if (any) gave_back_ = true;
    return any;
  }
  void Submit(ModelHandle handle, const BatchJob& job, Completions& done) noexcept override {
    for (const RowInputs& row : job.rows) {
      const TensorView& view = row.inputs[0];
      std::int64_t number = 0;
      if (view.bytes != sizeof number) continue;
      std::memcpy(&number, view.data, sizeof number);
      if (number == kSayProcess) return done.Done(job.id, SayProcess());
      if (number == kLeaveMemory) left_ = true;
      Obey(number);
    }
    identity_->Submit(handle, job, done);
  }

 private:
  // By the signals' numbers: a sanitizer would turn the deeds themselves into reports.
  static void Obey(std::int64_t number) {
    if (number == kDivide) Die(SIGFPE);
    if (number == kTouchNothing) Die(SIGSEGV);
    if (number == kKilled) Die(SIGKILL);
    if (number == kLeave) _exit(3);
    while (number == kForEver) std::this_thread::sleep_for(std::chrono::hours(1));
  }
  static void Die(int number) {
    ::signal(number, SIG_DFL);
    ::kill(getpid(), number);
    for (;;) pause();
  }
  static BatchResult SayProcess() {
    auto number = std::make_shared<std::int64_t>(getpid());
    auto output = std::make_shared<BatchOutput>();
    output->tensors.push_back(
        {.shape = {1, 1}, .data = std::as_bytes(std::span(number.get(), 1)), .rows = {}});
    output->storage = number;
    return {.status = {}, .output = std::move(output)};
  }

  std::atomic<bool> left_{false};
  std::atomic<bool> gave_back_{false};
  std::unique_ptr<Engine> identity_ = MakeEngine("identity", {}).value();
};

}  // namespace tactus::testing
