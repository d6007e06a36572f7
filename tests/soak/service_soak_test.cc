// Pipelines in service, over a runtime with its threads, lanes and repository: whatever clients,
// engines and whoever unloads models do, each call is answered once and nothing of it stays behind.
// `./run soak pipelines` does it for a hundred thousand calls.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include "base/rng.h"
#include "base/temporary_folder_test.h"
#include "engines/identity/identity_engine.h"
#include "ensemble/ensemble_service.h"
#include "pipeline/tensors.h"
#include "policies/registry.h"
#include "runtime/runtime.h"
#include "soak_options.h"

namespace tactus {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::array kPipelines = {"all", "each", "joined"};
constexpr int kClients = 3;
constexpr int kCallsInALife = 1333 * kClients;
// Of one client, without an answer yet.
constexpr std::size_t kWindow = 40;

// Answers with what it was asked, a little later, and fails now and then.
class FaultyEngine final : public Engine {
 public:
  explicit FaultyEngine(std::uint64_t seed) : seed_(seed), within_(MakeIdentityEngine()) {}

  EngineTraits traits() const override { return within_->traits(); }
  Expected<ModelHandle> Load(ModelSpec& spec, const LaneSpec& lane) override {
    return within_->Load(spec, lane);
  }
  void Unload(ModelHandle model) override { within_->Unload(model); }
  void Submit(ModelHandle model, const BatchJob& job, Completions& done) noexcept override {
    Rng rng = Rng::Stream(seed_ ^ job.id.value(), "soak/engine");
    std::this_thread::sleep_for(std::chrono::microseconds(rng.Below(150)));
    if (rng.Below(100) == 0) {
      return done.Done(job.id, {.status = Internal("the device is out of order")});
    }
    within_->Submit(model, job, done);
  }

 private:
  const std::uint64_t seed_;
  const std::unique_ptr<Engine> within_;
};

// As many rows come out as go in, so a call says how many the pipeline finds.
ModelSpec StepModel(const std::string& name, const std::string& platform) {
  ModelSpec spec;
  spec.name = name;
  spec.platform = platform;
  spec.max_batch = name == "crop" ? 8 : 0;
  spec.slo = Seconds(20);
  spec.inputs = {{"x", DataType::kFp32, {-1, 2}}};
  spec.outputs = {{"y", DataType::kFp32, {-1, 2}}};
  spec.exits = {{"1", "", 0.9}};
  return spec;
}

// Two lives one after the other have all rules.
DeadlineRule RuleOf(std::uint64_t seed, const std::string& pipeline) {
  constexpr std::array kRules = {DeadlineRule::kLatency, DeadlineRule::kEqual,
                                 DeadlineRule::kWhole,   DeadlineRule::kRedivide,
                                 DeadlineRule::kPersist, DeadlineRule::kSpare};
  const auto at = std::ranges::find(kPipelines, pipeline) - kPipelines.begin();
  return kRules[(seed * kPipelines.size() + static_cast<std::uint64_t>(at)) % kRules.size()];
}

EnsembleDeclaration DeclaredPipeline(const std::string& name, std::uint64_t seed) {
  EnsembleDeclaration declared{StepModel(name, "ensemble"), {}};
  PipelineDeclaration& pipeline = declared.pipeline;
  const bool joined = name == "joined";
  pipeline.name = name;
  pipeline.slo = declared.model.slo;
  pipeline.deadlines = RuleOf(seed, name);
  pipeline.answer = name == "all" ? AnswerRule::kAll : AnswerRule::kEach;
  pipeline.stages = {
      {.name = "find",
       .model = "find",
       .demultiply = true,
       .demultiply_most = 5,
       .inputs = {{"x", "x"}},
       .outputs = {{"y", "boxes"}}},
      {.name = "crop", .model = "crop", .inputs = {{"x", "boxes"}}, .outputs = {{"y", "crops"}}},
      {.name = "read",
       .model = "crop",
       .inputs = {{"x", "crops"}},
       .outputs = {{"y", joined ? "texts" : "y"}}}};
  if (joined) {
    pipeline.stages.push_back({.name = "join",
                               .model = "join",
                               .gather = "find",
                               .inputs = {{"x", "texts"}},
                               .outputs = {{"y", "y"}}});
  }
  return declared;
}

EnsembleFolders Folders(std::uint64_t seed) {
  EnsembleFolders folders;
  folders.list = [] { return std::vector<std::string>(kPipelines.begin(), kPipelines.end()); };
  folders.holds = [](const std::string& model, const std::string&) {
    return std::ranges::find(kPipelines, model) != kPipelines.end();
  };
  folders.read = [seed](const std::string& name,
                        const std::string&) -> Expected<std::vector<EnsembleDeclaration>> {
    EnsembleDeclaration declared = DeclaredPipeline(name, seed);
    if (Status linked = LinkStages(declared); !linked) return std::unexpected(linked.error());
    return std::vector{declared};
  };
  return folders;
}

// So that loading a model does not measure it.
ProfileFile StepProfile() {
  ProfileFile profile;
  profile.provenance = "made up by a soak";
  for (const char* name : {"find", "crop", "join"}) {
    ProfiledExit exit{.name = "1", .accuracy = 0.9};
    exit.cells.assign(8, {1, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0});
    profile.models.push_back({.name = name, .max_batch = 8, .exits = {exit}});
  }
  return profile;
}

int Threads() {
  int threads = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    ++threads;
  }
  return threads;
}

// Looks for some seconds: what is joined or cancelled takes a moment to be gone.
bool Becomes(const std::function<bool()>& wanted) {
  for (int i = 0; i < 20'000; ++i) {
    if (wanted()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// How calls ended, of all lives.
struct Ends {
  std::atomic<int> made{0}, answered{0}, wrong{0};
  std::atomic<int> served{0}, late{0}, refused{0}, cancelled{0}, failed{0};

  void Count(const InferReply& reply) {
    if (reply.status) {
      ++served;
      return;
    }
    switch (reply.status.error().code) {
      case ErrorCode::kDeadlineExceeded:
        ++late;
        return;
      case ErrorCode::kUnavailable:
      case ErrorCode::kResourceExhausted:
        ++refused;
        return;
      case ErrorCode::kCancelled:
        ++cancelled;
        return;
      default:
        ++failed;
    }
  }
};

// A server's service with its runtime, from the start to the end.
class ServedLife {
 public:
  ServedLife(std::uint64_t seed, Ends& ends) : seed_(seed), ends_(ends), engine_(seed) {
    for (const char* model : {"find", "crop", "join"}) {
      std::filesystem::create_directories(root_ / model / "1");
    }
    RuntimeParts parts;
    parts.policy = *MakePolicy("edgeserving");
    parts.engine_for = [this](std::string_view) -> Expected<Engine*> { return &engine_; };
    parts.profile = StepProfile();
    // Few places, so that some calls find none.
    runtime_ = std::make_unique<Runtime>(
        RuntimeOptions{.lanes = 2, .queue_capacity = 200, .call_capacity = 400, .pin = false},
        std::move(parts));
    service_ = std::make_unique<EnsembleService>(
        *runtime_, EnsembleOptions{.most_calls = 115, .is_explicit = true}, Folders(seed));
  }

  void Run() {
    RepositoryOptions repository;
    repository.folders = std::make_shared<ModelFolders>(std::vector{root_.path()});
    repository.control = ModelControl::kExplicit;
    repository.load = {"*"};
    repository.read = [](const std::filesystem::path& folder, std::int64_t,
                         const std::string&) -> Expected<ModelSpec> {
      return StepModel(folder.filename().string(), "identity");
    };
    ASSERT_TRUE(runtime_->Start(repository));
    service_->Open({"*"});
    std::atomic<int> at_work{kClients};
    std::vector<std::thread> clients;
    for (int c = 0; c < kClients; ++c) {
      clients.emplace_back([this, c, &at_work] {
        Ask(c);
        --at_work;
      });
    }
    while (at_work > 0) ComeAndGo();
    for (std::thread& client : clients) client.join();
    CheckNothingIsLeft();
  }

 private:
  struct Asked {
    CallId id = 0;
    std::weak_ptr<const void> input;
    std::shared_ptr<std::atomic<int>> answers;
  };

  // One client: calls of all pipelines, some with hardly any time, some of which it leaves.
  void Ask(int client) {
    Rng rng = Rng::Stream(seed_, fmt::format("soak/client/{}", client));
    std::vector<Asked> open;
    for (int made = 0; made < kCallsInALife / kClients;) {
      const auto model = service_->Find(kPipelines[rng.Below(kPipelines.size())], -1);
      if (!model) {  // unloaded
        std::this_thread::yield();
        continue;
      }
      ++made;
      open.push_back(Send(rng, *model));
      if (rng.Below(16) == 0) service_->Cancel(open[rng.Below(open.size())].id);
      // Refused, as a model is away: it comes back in a while.
      if (*open.back().answers > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      while (open.size() >= kWindow && std::erase_if(open, &IsOver) == 0) {
        std::this_thread::yield();
      }
    }
    EXPECT_TRUE(Becomes([&] {
      std::erase_if(open, &IsOver);
      return open.empty();
    })) << open.size()
        << " calls of client " << client << " without an answer, or still held";
  }
  // Answered, and its input let go.
  static bool IsOver(const Asked& asked) { return *asked.answers > 0 && asked.input.expired(); }

  Asked Send(Rng& rng, const std::shared_ptr<const ModelSpec>& model) {
    const auto rows = static_cast<std::int64_t>(rng.Below(7));
    auto values = std::make_shared<std::vector<float>>(static_cast<std::size_t>(rows) * 2, 1.5f);
    Asked asked{.input = values, .answers = std::make_shared<std::atomic<int>>(0)};
    InferCall call;
    call.model = model;
    call.inputs = {{"x", DataType::kFp32, {rows, 2}, std::as_bytes(std::span(*values))}};
    call.keepalive = std::move(values);
    call.received = SteadyClock::now();
    if (rng.Below(4) == 0) call.limit.Tighten(Micros(static_cast<std::int64_t>(rng.Below(8000))));
    call.reply = [this, rows, name = model->name, answers = asked.answers](InferReply&& reply) {
      const bool fits = !reply.status || Fits(reply, rows, name);
      if (answers->fetch_add(1) > 0 || !fits) ++ends_.wrong;
      ends_.Count(reply);
      ++ends_.answered;
    };
    ++ends_.made;
    asked.id = service_->Infer(std::move(call));
    return asked;
  }
  // All rows, of at most five, but where the answer does without those that failed.
  static bool Fits(const InferReply& reply, std::int64_t rows, const std::string& pipeline) {
    const OutputTensor& output = reply.outputs.front();
    std::size_t bytes = 0;
    for (const auto part : output.parts) bytes += part.size();
    const std::int64_t most = std::min<std::int64_t>(rows, 5);
    return bytes == static_cast<std::size_t>(output.shape[0]) * 2 * sizeof(float) &&
           (pipeline == "all" ? output.shape[0] == most : output.shape[0] <= most);
  }

  // What a pipeline needs goes and comes back, or is loaded anew under its calls; so do pipelines.
  void ComeAndGo() {
    const std::array models = {"crop", "join", "each", "all"};
    const char* model = models[coming_.Below(models.size())];
    if (coming_.Below(2) == 0) {
      EXPECT_TRUE(service_->Unload(model));
      std::this_thread::sleep_for(std::chrono::microseconds(coming_.Below(1000)));
    }
    const Status loaded = service_->Load(model, "");
    EXPECT_TRUE(loaded) << loaded.error().message;
    std::this_thread::sleep_for(std::chrono::milliseconds(coming_.Below(8)));
  }

  void CheckNothingIsLeft() {
    EXPECT_TRUE(Becomes([&] { return service_->calls() == 0; }));
    EXPECT_TRUE(Becomes([&] { return runtime_->calls() == 0 && runtime_->pending() == 0; }))
        << runtime_->calls() << " calls, " << runtime_->pending() << " requests";
    EXPECT_TRUE(service_->Ready());
    runtime_->Stop(Seconds(5));
    EXPECT_EQ(service_->unfinished(), 0u);
  }

  const std::uint64_t seed_;
  Ends& ends_;
  const TemporaryFolder root_;
  FaultyEngine engine_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<EnsembleService> service_;
  Rng coming_ = Rng::Stream(seed_, "soak/coming");
};

TEST(ServiceSoak, AnswersEachPipelineCallOnceAndKeepsNothing) {
  const std::uint64_t lives =
      std::max<std::uint64_t>((RequestsOf(12'000) + kCallsInALife - 1) / kCallsInALife, 2);
  const std::uint64_t first = SeedsOf(1).first;
  Ends ends;
  int threads = 0;  // after the first life: a sanitizer may have one of its own by then
  std::size_t heap_after_first = 0;
  for (std::uint64_t i = 0; i < lives && !HasFailure(); ++i) {
    SCOPED_TRACE(Again(first + i));
    ServedLife(first + i, ends).Run();
    if (i == 0) {
      threads = Threads();
      heap_after_first = mallinfo2().uordblks;
    }
    EXPECT_TRUE(Becomes([&] { return Threads() <= threads; })) << Threads() << " of " << threads;
  }
  const std::size_t heap = mallinfo2().uordblks;
  RecordProperty("lives", std::to_string(lives));
  EXPECT_EQ(ends.answered, ends.made);
  EXPECT_EQ(ends.wrong, 0) << "answered twice, or with another number of rows";
  // The second life and those after it kept nothing: 32 bytes of each call would show.
  EXPECT_LE(heap, heap_after_first + 96 * 1024 + 16 * (lives - 1) * kCallsInALife);
  // That lives were such: each kind of end came.
  EXPECT_GT(ends.served, ends.made / 4);
  EXPECT_GT(ends.late, 0);
  EXPECT_GT(ends.refused, 0);
  EXPECT_GT(ends.cancelled, 0);
  EXPECT_GT(ends.failed, 0);
  std::printf(
      "%s\n",
      fmt::format("{} calls of pipelines in {} lives, each answered once: {} served, {} too "
                  "late, {} refused, {} cancelled, {} failed; {} threads between lives; "
                  "heap after the first life {} KB, after the last {} KB",
                  ends.made.load(), lives, ends.served.load(), ends.late.load(),
                  ends.refused.load(), ends.cancelled.load(), ends.failed.load(), threads,
                  heap_after_first / 1024, heap / 1024)
          .c_str());
}

}  // namespace
}  // namespace tactus
