#include "engines/isolated/engine_process.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engines/isolated/sharing_famine.h"

namespace tactus::isolated {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kKeptAtRest = std::size_t{1} << 20;  // of a line that nobody uses
constexpr std::size_t kSmallest = std::size_t{64} << 10;   // of memory for a batch
// What a question may take at most. A load reads and optimizes graphs of any size; the others are
// quick, but for a machine that is out of breath. A run is the watchdog's (ProcessKeeper::Stop).
constexpr Duration kHelloLimit = Seconds(30);
constexpr Duration kLoadLimit = Seconds(900);
constexpr Duration kQuickLimit = Seconds(60);

constexpr std::size_t kOutputs = 8;  // answers of one connection that may be read at a time

template <class... Ts>
ByteWriter Asking(Question question, const Ts&... what) {
  ByteWriter writer;
  writer(question, what...);
  return writer;
}

// Of the memory that is made for so many bytes.
std::size_t Piece(std::size_t bytes) { return std::bit_ceil(std::max(bytes, kSmallest)); }

}  // namespace

Expected<std::shared_ptr<EngineProcess>> EngineProcess::Start(const Options& options,
                                                              ProcessKeeper& keeper) {
  auto ends = Connection::Make();
  if (!ends) {
    SharingFamine::Note(kSmallest, nullptr);
    return std::unexpected(std::move(ends.error()));
  }
  std::vector<std::string> command = options.program;
  command.push_back(std::to_string(getpid()));
  command.push_back(options.title);
  const auto pid = keeper.Spawn(command, ends->second.descriptor(), options.cores);
  if (!pid) return std::unexpected(pid.error());
  std::shared_ptr<EngineProcess> process(new EngineProcess(*pid, std::move(ends->first), keeper));
  {
    const Connection gone = std::move(ends->second);  // so that the process's end is the only one
  }
  const ByteWriter hello = Asking(Question::kHello, options.hello);
  keeper.Watch(*process);
  const auto answer = process->Exchange(process->control_, hello, kHelloLimit);
  if (!answer) return std::unexpected(process->Died());
  auto engine = ReadAnswer<HelloAnswer>(*answer, "an engine's name");
  if (!engine) return std::unexpected(std::move(engine.error()));
  if (!engine->status) return std::unexpected(std::move(engine->status.error()));
  process->engine_ = *std::move(engine);
  process->greeted_.store(true, std::memory_order_release);
  return process;
}

EngineProcess::~EngineProcess() {
  keeper_.Forget(*this);
  Died();
}

void EngineProcess::Kill(const char* why) {
  if (dead()) return;
  killed_since_.store(why, std::memory_order_relaxed);
  kill(pid_, SIGKILL);
}

bool EngineProcess::StillRuns() {
  if (dead()) return false;
  siginfo_t ended{};
  const bool gone =
      waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      ended.si_pid != 0;
  if (gone) Died();
  return !gone;
}

std::uint64_t EngineProcess::ResidentBytes() const {
  std::ifstream statm(fmt::format("/proc/{}/statm", pid_));
  std::uint64_t pages = 0, resident = 0;
  if (!(statm >> pages >> resident)) return 0;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// The first who hears of it takes the process off the system's list. One that has ended by a signal
// of its own is not harmed by another, one that only closed its end is no use.
Error EngineProcess::Died() {
  std::call_once(ended_, [this] {
    kill(pid_, SIGKILL);
    pid_t waited = -1;
    do {
      waited = waitpid(pid_, &ending_, 0);
    } while (waited < 0 && errno == EINTR);
    if (waited < 0) ending_ = -1;
    dead_.store(true, std::memory_order_release);
  });
  return {ErrorCode::kUnavailable, "the engine's " + Ending()};
}

std::string EngineProcess::Ending() const {
  if (const char* why = killed_since_.load(std::memory_order_relaxed); why != nullptr) {
    return fmt::format("process {} was killed, since {}", pid_, why);
  }
  if (ending_ >= 0 && WIFSIGNALED(ending_)) {
    const int signal = WTERMSIG(ending_);
    const char* name = sigabbrev_np(signal);
    return fmt::format("process {} ended by signal {} (SIG{}){}", pid_, signal,
                       name == nullptr ? "?" : name,
                       signal == SIGKILL ? ", as where memory runs out" : "");
  }
  if (ending_ >= 0 && WIFEXITED(ending_)) {
    return fmt::format("process {} ended with code {}", pid_, WEXITSTATUS(ending_));
  }
  return fmt::format("process {} ended", pid_);
}

Expected<std::unique_ptr<EngineProcess::Line>> EngineProcess::TakeLine() {
  if (dead()) return std::unexpected(Died());
  {
    const std::lock_guard lock(lines_mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Line> line = std::move(idle_.back());
      idle_.pop_back();
      return line;
    }
  }
  auto ends = Connection::Make();
  if (!ends) {
    SharingFamine::Note(kSmallest, this);
    return std::unexpected(std::move(ends.error()));
  }
  const std::lock_guard lock(control_mutex_);
  if (!control_.Send(Asking(Question::kConnection).bytes(), ends->second.descriptor())) {
    return std::unexpected(Died());
  }
  return std::make_unique<Line>(std::move(ends->first));
}

bool EngineProcess::GiveBackAtRest() {
  std::vector<std::unique_ptr<Line>> rested;
  {
    const std::lock_guard lock(lines_mutex_);
    for (std::unique_ptr<Line>& line : idle_) {
      const bool rests = !std::exchange(line->used, false);
      if (rests && line->bytes() > kKeptAtRest) rested.push_back(std::move(line));
    }
    std::erase(idle_, nullptr);
  }
  return !rested.empty();  // the process lets go of its side where a line ends
}

void EngineProcess::GiveBack(std::unique_ptr<Line> line) {
  const std::lock_guard lock(lines_mutex_);
  idle_.push_back(std::move(line));
}

std::optional<std::span<const std::byte>> EngineProcess::Exchange(Connection& connection,
                                                                  const ByteWriter& question,
                                                                  Duration limit) {
  const auto asked = Clock::now();
  const auto answer = connection.Send(question.bytes()) ? connection.Receive(limit) : std::nullopt;
  if (!answer && Clock::now() - asked >= limit) {
    Kill("it did not answer in time");
  }
  return answer;
}

Expected<std::vector<std::byte>> EngineProcess::Ask(const ByteWriter& question, Duration limit) {
  auto line = TakeLine();
  if (!line) return std::unexpected(std::move(line.error()));
  Connection& connection = (*line)->connection;
  const auto answer = Exchange(connection, question, limit);
  if (!answer) return std::unexpected(Died());
  std::vector<std::byte> bytes(answer->begin(), answer->end());
  GiveBack(*std::move(line));
  return bytes;
}

Expected<LoadAnswer> EngineProcess::Load(const ModelSpec& spec, const CpuPlacement& placement) {
  const auto answer = Ask(Asking(Question::kLoad, spec, placement), kLoadLimit);
  if (!answer) return std::unexpected(answer.error());
  return ReadAnswer<LoadAnswer>(*answer, "a loaded model");
}

void EngineProcess::Unload(std::uint64_t handle) {
  (void)Ask(Asking(Question::kUnload, handle), kQuickLimit);
}

MemoryUse EngineProcess::Memory(std::uint64_t handle) {
  const auto answer = Ask(Asking(Question::kMemory, handle), kQuickLimit);
  if (!answer) return {};
  return ReadAnswer<MemoryUse>(*answer, "what a model holds").value_or(MemoryUse{});
}

std::vector<SampleTensor> EngineProcess::Sample(std::uint64_t handle) {
  const auto answer = Ask(Asking(Question::kSample, handle), kQuickLimit);
  if (!answer) return {};
  using Samples = std::vector<SampleTensor>;
  return ReadAnswer<Samples>(*answer, "a sample").value_or(Samples{});
}

bool EngineProcess::TakeSign() {
  const auto sign = control_.Receive(Duration{});
  if (!sign) return false;
  auto arenas = ReadAnswer<std::vector<ArenaUse>>(*sign, "the memory of arenas");
  const std::lock_guard lock(arenas_mutex_);
  if (arenas) arenas_ = *std::move(arenas);
  return true;
}

std::vector<ArenaUse> EngineProcess::Arenas() const {
  const std::lock_guard lock(arenas_mutex_);
  return arenas_;
}

// Who holds the mutex may wait for a process that hangs.
int EngineProcess::UnansweredLooks() {
  if (!greeted_.load(std::memory_order_acquire)) return 0;
  const std::unique_lock lock(control_mutex_, std::try_to_lock);
  if (lock && asked_) asked_ = !TakeSign();
  if (lock && !asked_) {
    unanswered_.store(0, std::memory_order_relaxed);
    control_.SendOrNot(Asking(Question::kAlive).bytes());
    asked_ = true;
  } else {
    unanswered_.fetch_add(1, std::memory_order_relaxed);
  }
  return unanswered();
}

void EngineProcess::Terminate(BatchId batch) {
  const std::unique_lock lock(control_mutex_, std::try_to_lock);
  if (lock) control_.SendOrNot(Asking(Question::kTerminate, batch.value()).bytes());
}

BatchResult EngineProcess::Lost(bool suspect) {
  return {.status = std::unexpected(Died()), .lane_lost = true, .suspect = suspect};
}

bool EngineProcess::HandOver(Line& line, std::uint32_t number, const SharedMemory& memory) {
  const std::uint64_t size = memory.bytes().size();
  const ByteWriter message = Asking(Question::kSegment, number, size);
  return line.connection.Send(message.bytes(), memory.descriptor());
}

// The rows of each input one behind the other, as engines want a batch.
Status EngineProcess::CopyIn(Line& line, const BatchJob& job) {
  const std::size_t inputs = job.rows.empty() ? 0 : job.rows[0].inputs.size();
  line.at.clear();
  std::size_t total = 0;
  for (std::size_t i = 0; i < inputs; ++i) {
    line.at.push_back(total);
    for (const RowInputs& row : job.rows) total += row.inputs[i].bytes;
    total = AlignedUp(total);
  }
  if (total > line.inputs.bytes().size() || line.inputs.bytes().empty()) {
    const std::size_t bytes = Piece(total);
    auto memory = SharedMemory::Make(bytes);
    if (!memory) {
      SharingFamine::Note(bytes, &line.inputs);
      return std::unexpected(std::move(memory.error()));
    }
    line.inputs = *std::move(memory);
    // A process that died is heard of where its answer is awaited.
    (void)HandOver(line, kInputs, line.inputs);
    line.inputs.CloseDescriptor();
  }
  for (std::size_t i = 0; i < inputs; ++i) {
    std::byte* to = line.inputs.bytes().data() + line.at[i];
    for (const RowInputs& row : job.rows) {
      const TensorView& view = row.inputs[i];
      if (view.bytes > 0) std::memcpy(to, view.data, view.bytes);
      to += view.bytes;
    }
  }
  return {};
}

// The number of memory for an answer of so many bytes that nobody reads; of fewer where it cannot
// be had and they are but likely.
Expected<std::uint32_t> EngineProcess::TakeOutput(Line& line, std::size_t bytes, bool likely) {
  const auto fits = [&](const std::shared_ptr<SharedMemory>& memory) {
    return memory.use_count() == 1 && memory->bytes().size() >= bytes;
  };
  const auto is_free = [](const auto& memory) { return memory.use_count() == 1; };
  auto found = std::ranges::find_if(line.outputs, fits);
  auto memory = found == line.outputs.end() ? SharedMemory::Make(Piece(bytes)) : SharedMemory();
  if (!memory && likely) found = std::ranges::find_if(line.outputs, is_free);
  if (!memory && found == line.outputs.end()) {
    SharingFamine::Note(Piece(bytes), &line.outputs);
    return std::unexpected(std::move(memory.error()));
  }
  if (found == line.outputs.end()) {
    found = std::ranges::find_if(line.outputs, is_free);
    if (found == line.outputs.end() && line.outputs.size() < kOutputs) {
      found = line.outputs.insert(found, nullptr);
    } else if (found == line.outputs.end()) {
      found += -static_cast<std::ptrdiff_t>(1 + line.next++ % kOutputs);
    }
    *found = std::make_shared<SharedMemory>(*std::move(memory));
    (void)HandOver(line, static_cast<std::uint32_t>(found - line.outputs.begin()) + 1, **found);
    (*found)->CloseDescriptor();
  }
  // Whoever let go of the last answer there has read it.
  std::atomic_thread_fence(std::memory_order_acquire);
  return static_cast<std::uint32_t>(found - line.outputs.begin()) + 1;
}

// Reads the process's answer to a batch; nothing: there is none, or not one that was asked for.
std::optional<RunAnswer> EngineProcess::TakeAnswer(Line& line) {
  const auto bytes = line.connection.Receive();
  if (!bytes) return {};
  auto answer = ReadAnswer<RunAnswer>(*bytes, "a batch's output");
  if (!answer) return {};
  return *std::move(answer);
}

BatchResult EngineProcess::Run(std::uint64_t handle, const BatchJob& job,
                               const OutputsAsked& asked) {
  auto taken = TakeLine();
  if (!taken && dead()) return Lost(false);
  if (!taken) return {.status = std::unexpected(std::move(taken.error()))};
  Line& line = **taken;
  line.used = true;
  const auto begin = Clock::now();
  // Nothing has been asked on the line yet: a smaller batch may still use it.
  if (Status copied = CopyIn(line, job); !copied) {
    GiveBack(*std::move(taken));
    return {.status = std::move(copied)};
  }
  auto number = TakeOutput(line, line.last_bytes, true);
  if (!number) {
    GiveBack(*std::move(taken));
    return {.status = std::unexpected(std::move(number.error()))};
  }
  ByteWriter question = Asking(Question::kRun);
  PutRun(question, handle, job, line.at, *number);
  const auto copied = Clock::now();
  if (!line.connection.Send(question.bytes())) return Lost(false);  // it was dead before
  auto answer = TakeAnswer(line);
  if (answer && answer->needs > 0) {
    number = TakeOutput(line, answer->needs, false);
    if (!number) {
      GiveBack(*std::move(taken));
      return {.status = std::unexpected(number.error())};
    }
    if (!line.connection.Send(Asking(Question::kFetch, *number).bytes())) return Lost(true);
    answer = TakeAnswer(line);
  }
  if (answer && answer->unmapped) {
    line.inputs = {};
    line.outputs.clear();
    GiveBack(*std::move(taken));
    return {.status = std::move(answer->status)};
  }
  if (!answer || answer->needs > 0) return Lost(true);
  const auto answered = Clock::now();
  BatchResult result{.status = std::move(answer->status),
                     .gather = answer->gather + (copied - begin),
                     .infer = answer->infer};
  result.misshapen = !result.status && answer->misshapen;
  if (result.status) {
    const std::shared_ptr<SharedMemory> memory = line.outputs[*number - 1];
    auto output = MakeOutput(*answer, asked, memory->bytes(), memory);
    if (!output) {
      BatchResult lost = Lost(true);
      lost.status = std::unexpected(std::move(output.error()));
      return lost;
    }
    result.output = *std::move(output);
    SharingFamine::Had(kSmallest, this);
    SharingFamine::Had(line.inputs.bytes().size(), &line.inputs);
    SharingFamine::Had(memory->bytes().size(), &line.outputs);
    line.last_bytes = 0;
    for (const auto& tensor : answer->tensors) line.last_bytes += AlignedUp(tensor.bytes);
  }
  result.scatter = answer->scatter + (Clock::now() - answered);
  GiveBack(*std::move(taken));
  return result;
}

}  // namespace tactus::isolated
