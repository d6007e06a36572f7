#include "engines/isolated/process_host.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory_guard.h"
#include "engines/isolated/connection.h"
#include "engines/isolated/engine_process.h"
#include "engines/isolated/messages.h"
#include "engines/isolated/shared_memory.h"

namespace tactus {
namespace isolated {
namespace {

// The one result of one batch.
class HostedResult final : public Completions {
 public:
  void Done(BatchId, BatchResult&& result) noexcept override {
    const std::lock_guard lock(mutex_);
    result_ = std::move(result);
    answered_.notify_one();
  }
  BatchResult Wait() {
    std::unique_lock lock(mutex_);
    answered_.wait(lock, [&] { return result_.has_value(); });
    return *std::move(result_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable answered_;
  std::optional<BatchResult> result_;
};

std::size_t BytesOf(const BatchOutput& output) {
  std::size_t bytes = 0;
  for (const BatchOutput::Tensor& tensor : output.tensors) bytes += AlignedUp(tensor.data.size());
  return bytes;
}

// The tensors of `output` in `memory`, which has room for them.
void CopyOut(const BatchOutput& output, std::span<std::byte> memory, RunAnswer& answer) {
  std::size_t at = 0;
  for (const BatchOutput::Tensor& tensor : output.tensors) {
    RunAnswer::Tensor& to = answer.tensors.emplace_back();
    to.shape = tensor.shape;
    to.offset = at;
    to.bytes = tensor.data.size();
    for (const auto& row : tensor.rows) to.row_bytes.push_back(row.size());
    if (!tensor.data.empty()) {
      std::memcpy(memory.data() + at, tensor.data.data(), tensor.data.size());
    }
    at += AlignedUp(tensor.data.size());
  }
}

// One connection: the server asks one question at a time there.
class Conversation {
 public:
  Conversation(Engine& engine, Connection connection)
      : engine_(engine), connection_(std::move(connection)) {}

  // Until the server closes it.
  void Run() {
    while (const auto message = connection_.Receive()) {
      ByteReader from(*message);
      ByteWriter answer;
      if (Answer(static_cast<Question>(from.Take<std::uint8_t>()), from, answer) &&
          !connection_.Send(answer.bytes())) {
        return;
      }
    }
  }

 private:
  // False: the question has no answer.
  bool Answer(Question question, ByteReader& from, ByteWriter& answer) {
    switch (question) {
      case Question::kLoad:
        answer(Load(from));
        return true;
      case Question::kUnload:
        engine_.Unload({from.Take<std::uint64_t>()});
        return true;
      case Question::kMemory:
        answer(engine_.Memory({from.Take<std::uint64_t>()}));
        return true;
      case Question::kSample:
        answer(engine_.Sample({from.Take<std::uint64_t>()}));
        return true;
      case Question::kSegment:
        TakeSegment(from);
        return false;
      case Question::kRun:
        answer(RunBatch(from));
        return true;
      case Question::kFetch:
        output_segment_ = from.Take<std::uint32_t>();
        answer(HandOut());
        return true;
      default:
        return false;
    }
  }

  LoadAnswer Load(ByteReader& from) {
    auto spec = from.Take<ModelSpec>();
    LaneSpec lane;
    lane.placement = from.Take<CpuPlacement>();
    const auto handle =
        WithMemory(fmt::format("model '{}'", spec.name), [&] { return engine_.Load(spec, lane); });
    LoadAnswer answer;
    if (!handle) {
      answer.status = std::unexpected(handle.error());
      return answer;
    }
    answer.handle = handle->value;
    answer.contents = spec.contents;
    answer.max_batch = spec.max_batch;
    answer.inputs = std::move(spec.inputs);
    answer.outputs = std::move(spec.outputs);
    for (const ExitSpec& exit : spec.exits) answer.exits.push_back(exit.name);
    return answer;
  }

  void TakeSegment(ByteReader& from) {
    const auto number = from.Take<std::uint32_t>();
    const auto bytes = from.Take<std::uint64_t>();
    auto memory = SharedMemory::Map(connection_.TakeHandedOver(), bytes);
    segments_.erase(number);
    missing_.erase(number);
    if (memory) {
      segments_[number] = *std::move(memory);
    } else {
      missing_.emplace(number, std::move(memory.error()));
    }
  }
  RunAnswer Unmapped(std::uint32_t segment) const {
    return {.status = std::unexpected(missing_.at(segment)), .unmapped = true};
  }

  RunAnswer RunBatch(ByteReader& from) {
    if (missing_.contains(kInputs)) return Unmapped(kInputs);
    const auto run = TakeRun(from, segments_[kInputs].bytes());
    if (!run) return {.status = Internal("the server sent an invalid batch")};
    // The inputs stay where they are until the output was copied: who answers with them may.
    std::vector<RowInputs> rows = run->rows;
    for (RowInputs& row : rows) row.owner = here_;
    HostedResult done;
    engine_.Submit({run->handle}, {run->id, ModelId{0}, run->exit, rows}, done);
    result_ = done.Wait();
    output_segment_ = run->output_segment;
    return HandOut();
  }

  RunAnswer HandOut() {
    if (missing_.contains(output_segment_)) return Unmapped(output_segment_);
    RunAnswer answer{.status = result_.status};
    answer.gather = result_.gather;
    answer.infer = result_.infer;
    answer.scatter = result_.scatter;
    answer.misshapen = result_.misshapen;
    if (answer.status && result_.output == nullptr) answer.status = Internal("there is no output");
    if (!answer.status) return answer;
    const std::span<std::byte> memory = segments_[output_segment_].bytes();
    if (const std::size_t needs = BytesOf(*result_.output); needs > memory.size()) {
      answer.needs = needs;
      return answer;
    }
    answer.cut_jpegs = result_.output->cut_jpegs;
    CopyOut(*result_.output, memory, answer);
    result_ = {};
    return answer;
  }

  Engine& engine_;
  Connection connection_;
  const std::shared_ptr<const void> here_ = std::make_shared<int>();
  std::map<std::uint32_t, SharedMemory> segments_;
  std::map<std::uint32_t, Error> missing_;  // that were handed over and could not be mapped
  BatchResult result_;
  std::uint32_t output_segment_ = 0;
};

// What the arenas hold, noted now and then: whoever asks for a sign of life waits for no engine.
// The same thread has the engine give back what rests.
class NotedArenas {
 public:
  explicit NotedArenas(Engine& engine) {
    std::thread([this, &engine] {
      for (int looks = 1;; ++looks, std::this_thread::sleep_for(kLook)) {
        if (looks % (Engine::kRestLook / kLook) == 0 && engine.GiveBackAtRest()) malloc_trim(0);
        ByteWriter arenas;
        arenas(engine.Arenas());
        const std::lock_guard lock(mutex_);
        last_ = std::move(arenas);
      }
    }).detach();
  }
  bool SendOver(Connection& connection) {
    const std::lock_guard lock(mutex_);
    return connection.Send(last_.bytes());
  }

 private:
  static constexpr Duration kLook = Millis(500);
  std::mutex mutex_;
  ByteWriter last_;
};

// Ends with the server, not with whoever stops it: the server's last batches run to their end.
void LiveWithServer(long server) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != server) _exit(0);  // it is gone already
  for (const int each : {SIGINT, SIGTERM, SIGHUP}) ::signal(each, SIG_IGN);
  // A dump of all models' memory would hold up who waits to hear of this process's end.
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  // Where memory runs out the system takes this process before the server.
  std::ofstream("/proc/self/oom_score_adj") << 500;
}

}  // namespace

// On the first connection: the server speaks, and its end is this process's.
[[noreturn]] void Host(const HostedEngineMaker& make) {
  Connection control(kControlDescriptor);
  const auto first = control.Receive();
  if (!first) _exit(0);
  ByteReader from(*first);
  (void)from.Take<std::uint8_t>();
  const auto hello = from.Take<Hello>();
  auto engine = make(hello.engine, hello.library);
  HelloAnswer answer;
  if (engine) {
    answer.name = (*engine)->traits().name;
    answer.terminates = (*engine)->traits().terminates;
    answer.tries = (*engine)->traits().tries;
  } else {
    answer.status = std::unexpected(engine.error());
  }
  ByteWriter said;
  said(answer);
  if (!control.Send(said.bytes()) || !engine) _exit(0);
  NotedArenas arenas(**engine);
  while (const auto message = control.Receive()) {
    ByteReader asked(*message);
    const auto question = static_cast<Question>(asked.Take<std::uint8_t>());
    if (question == Question::kTerminate) {
      (*engine)->Terminate(BatchId{asked.Take<std::uint64_t>()});
    } else if (question == Question::kAlive) {
      if (!arenas.SendOver(control)) _exit(0);
    } else if (question == Question::kConnection) {
      Engine& served = **engine;
      std::thread([&served, connection = Connection(control.TakeHandedOver())]() mutable {
        Conversation(served, std::move(connection)).Run();
      }).detach();
    }
  }
  _exit(0);
}

}  // namespace isolated

void RunEngineProcess(int argc, char** argv, const HostedEngineMaker& make) {
  if (argc < 3) {
    std::fprintf(stderr, "tactus %s: started by a server, not by hand\n", kEngineProcess);
    std::exit(2);
  }
  isolated::LiveWithServer(std::strtol(argv[2], nullptr, 10));
  isolated::Host(make);
}

}  // namespace tactus
