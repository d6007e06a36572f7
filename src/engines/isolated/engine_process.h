// A process that runs an engine, as its server has it: what is asked there, and how it ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/expected.h"
#include "core/engine.h"
#include "engines/isolated/connection.h"
#include "engines/isolated/messages.h"
#include "engines/isolated/process_keeper.h"
#include "engines/isolated/shared_memory.h"

namespace tactus::isolated {

inline constexpr int kControlDescriptor = 3;  // the process's end of the first connection

class EngineProcess {
 public:
  struct Options {
    std::vector<std::string> program;  // and its first arguments
    Hello hello;
    std::string title;       // the last argument, for people who list processes
    std::vector<int> cores;  // where all of its threads run; empty: anywhere
  };
  // Blocks until the engine is there, for half a minute at most. The error is the engine's, or how
  // the process ended. `keeper` outlives it, and kills it where it hangs.
  static Expected<std::shared_ptr<EngineProcess>> Start(const Options& options,
                                                        ProcessKeeper& keeper);
  // Ends it, whatever it does.
  ~EngineProcess();
  EngineProcess(const EngineProcess&) = delete;
  EngineProcess& operator=(const EngineProcess&) = delete;

  const HelloAnswer& engine() const { return engine_; }
  pid_t pid() const { return pid_; }
  bool dead() const { return dead_.load(std::memory_order_acquire); }
  // Looks whether it has ended since anybody spoke to it.
  bool StillRuns();
  // Resident memory of the process; 0 once it has ended.
  std::uint64_t ResidentBytes() const;
  // How it ended: "process 71 ended by signal 8 (Floating point exception)". Once it is dead.
  std::string Ending() const;

  // Each blocks until the process answers, and is an error where it died: kUnavailable with its
  // ending. One that takes longer than such a question may is killed. Thread-safe.
  Expected<LoadAnswer> Load(const ModelSpec& spec, const CpuPlacement& placement);
  void Unload(std::uint64_t handle);
  MemoryUse Memory(std::uint64_t handle);
  std::vector<SampleTensor> Sample(std::uint64_t handle);

  // With lane_lost where the process died; suspect where it did so under this batch.
  BatchResult Run(std::uint64_t handle, const BatchJob& job, const OutputsAsked& asked);
  // Asks it for a sign of life where it has given one for the last question. For how many looks in
  // a row it has left one without an answer; none before it has said what the engine is. Quick;
  // from one thread.
  int UnansweredLooks();
  // As the last look had it.
  int unanswered() const { return unanswered_.load(std::memory_order_relaxed); }
  // As its last sign of life said, so that nobody waits for it.
  std::vector<ArenaUse> Arenas() const;
  // Ends the lines that were not used since the last call and hold much memory; whether there was
  // one.
  bool GiveBackAtRest();
  // Best effort, and quick.
  void Terminate(BatchId batch);
  // It is dead when this returns, or will be in a moment. `why`, which lives for ever, becomes a
  // part of its ending.
  void Kill(const char* why);

 private:
  // A connection with its memory: number 0 holds inputs, the others outputs, each of which is free
  // again when nobody reads the answer in it any more.
  struct Line {
    explicit Line(Connection made) : connection(std::move(made)) {}
    Connection connection;
    SharedMemory inputs;
    std::vector<std::shared_ptr<SharedMemory>> outputs;
    std::size_t next = 0;         // of `outputs`, to be replaced where none is free
    std::size_t last_bytes = 0;   // of the last answer
    std::vector<std::size_t> at;  // where the inputs of the batch begin
    bool used = false;            // since GiveBackAtRest looked
    std::size_t bytes() const {
      std::size_t sum = inputs.bytes().size();
      for (const auto& each : outputs) sum += each == nullptr ? 0 : each->bytes().size();
      return sum;
    }
  };

  EngineProcess(pid_t pid, Connection control, ProcessKeeper& keeper)
      : pid_(pid), keeper_(keeper), control_(std::move(control)) {}

  // kUnavailable: the process is dead.
  Expected<std::unique_ptr<Line>> TakeLine();
  void GiveBack(std::unique_ptr<Line> line);
  // The answer, until the connection is read again. Nothing: the process has ended, or is killed,
  // since it did not answer in time.
  std::optional<std::span<const std::byte>> Exchange(isolated::Connection& connection,
                                                     const ByteWriter& question, Duration limit);
  // The answer's bytes.
  Expected<std::vector<std::byte>> Ask(const ByteWriter& question, Duration limit);
  bool TakeSign();
  Error Died();
  BatchResult Lost(bool suspect);

  static Status CopyIn(Line& line, const BatchJob& job);
  static bool HandOver(Line& line, std::uint32_t number, const SharedMemory& memory);
  static std::optional<RunAnswer> TakeAnswer(Line& line);
  static Expected<std::uint32_t> TakeOutput(Line& line, std::size_t bytes, bool likely);

  const pid_t pid_;
  ProcessKeeper& keeper_;
  HelloAnswer engine_;
  std::mutex control_mutex_;
  Connection control_;
  mutable std::mutex arenas_mutex_;
  std::vector<ArenaUse> arenas_;
  std::mutex lines_mutex_;
  std::vector<std::unique_ptr<Line>> idle_;
  std::once_flag ended_;
  int ending_ = 0;  // as waitpid says it; -1: unknown
  std::atomic<bool> dead_{false};
  bool asked_ = false;                // for a sign of life, and has not answered
  std::atomic<int> unanswered_{0};    // looks since
  std::atomic<bool> greeted_{false};  // it has said what the engine is
  std::atomic<const char*> killed_since_{nullptr};
};

}  // namespace tactus::isolated
