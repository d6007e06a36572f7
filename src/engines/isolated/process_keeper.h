// The thread that starts an engine's processes, and ends those that do not heed a stop. Processes
// that are to die with their parent die with the thread that started them, so one thread, which
// lives as long as the engine, starts them all.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "base/expected.h"
#include "base/ids.h"
#include "base/serving_time.h"

namespace tactus::isolated {

class EngineProcess;

class ProcessKeeper {
 public:
  // A run that is to stop is asked to, again and again; after so long its process is killed. 0: it
  // never is.
  // A process that is watched and gives no sign of life for `hang_limit` is killed. 0: none is.
  ProcessKeeper(Duration stop_grace, Duration hang_limit);
  ~ProcessKeeper();  // when nothing runs
  ProcessKeeper(const ProcessKeeper&) = delete;
  ProcessKeeper& operator=(const ProcessKeeper&) = delete;

  // Starts `command` on `cores` (empty: as this process), with `control` as its descriptor 3 and
  // nothing else of this process's but standard error. The error is the system's.
  Expected<pid_t> Spawn(const std::vector<std::string>& command, int control,
                        const std::vector<int>& cores);

  // Until it is forgotten.
  void Watch(EngineProcess& process);
  // Whether it has given no sign of life for a seventh of the `hang_limit`: whatever it runs, it
  // answers at once, so it probably hangs. From any thread.
  static bool Silent(const EngineProcess& process);
  void Forget(EngineProcess& process);
  // Kills all that are watched or come to be, and starts no more. Waits for none of them.
  void KillAll();

  // A batch that runs in a process, as long as this lives.
  class Running {
   public:
    Running(ProcessKeeper& keeper, EngineProcess& process, BatchId id);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    // Its process was killed for it.
    bool killed() const;

   private:
    friend class ProcessKeeper;
    ProcessKeeper& keeper_;
    EngineProcess& process_;
    const BatchId id_;
    // Under the keeper's mutex.
    bool asked_ = false;
    bool killed_ = false;
    std::chrono::steady_clock::time_point kill_at_;
  };
  // Stops the batch if it runs. Quick.
  void Stop(BatchId batch);

 private:
  void Run();
  // Asks those that are to stop once more, and kills. When to look again.
  std::optional<std::chrono::steady_clock::time_point> LookAtStops();

  // Asks all processes for a sign of life, where it is time to. When to look again.
  std::optional<std::chrono::steady_clock::time_point> LookForHangs();

  const Duration stop_grace_;
  const Duration hang_limit_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Running*> running_;
  std::vector<std::function<void()>> starts_;
  std::vector<EngineProcess*> watched_;
  std::chrono::steady_clock::time_point look_at_{};
  bool closed_ = false;  // by KillAll
  bool ends_ = false;
  std::thread thread_;  // last: it uses what stands above
};

}  // namespace tactus::isolated
