// Lives of ensembles at random: whatever steps, clients and models do, each call is answered once
// and nothing of it stays behind.
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "base/cases_for_test.h"
#include "base/rng.h"
#include "ensemble/ensemble_service.h"
#include "ensemble/scripted_steps_test.h"
#include "service/plain_service_test.h"
#include "service/step_group.h"

namespace tactus {
namespace {

constexpr const char* kEnsembles[] = {"all", "each", "joined"};

PipelineDeclaration RowsOf(AnswerRule answer, bool join) {
  PipelineDeclaration rows;
  rows.deadlines = join ? DeadlineRule::kPersist : DeadlineRule::kRedivide;
  rows.answer = answer;
  rows.stages = {
      {.name = "find",
       .model = "find",
       .demultiply = true,
       .demultiply_most = 5,
       .inputs = {{"in", "x"}},
       .outputs = {{"rows", "boxes"}}},
      {.name = "crop", .model = "crop", .inputs = {{"in", "boxes"}}, .outputs = {{"out", "crops"}}},
      {.name = "read",
       .model = "crop",
       .inputs = {{"in", "crops"}},
       .outputs = {{"out", join ? "texts" : "y"}}}};
  if (join) {
    rows.stages.push_back({.name = "join",
                           .model = "join",
                           .gather = "find",
                           .inputs = {{"in", "texts"}},
                           .outputs = {{"out", "y"}}});
  }
  return rows;
}

std::vector<ModelSpec> Models() {
  const TensorSpec in{"in", DataType::kFp32, {-1, 2}};
  const TensorSpec out{"out", DataType::kFp32, {-1, 2}};
  return {
      FloatModel("find", 0, {{"in", DataType::kFp32, {2}}}, {{"rows", DataType::kFp32, {-1, 2}}}),
      FloatModel("crop", 8, {in}, {out}), FloatModel("join", 0, {in}, {out})};
}

void DeclareAll(EnsembleBench& bench) {
  for (const ModelSpec& model : Models()) bench.steps.Add(model);
  for (const char* name : kEnsembles) {
    ModelSpec model =
        FloatModel(name, 0, {{"x", DataType::kFp32, {2}}}, {{"y", DataType::kFp32, {-1, 2}}});
    model.slo = Millis(20);
    const bool join = std::string(name) == "joined";
    bench.Declare(std::move(model),
                  RowsOf(std::string(name) == "all" ? AnswerRule::kAll : AnswerRule::kEach, join));
  }
  bench.service->Open({"*"});
}

// Where steps run, which changes; steps of one place may go as one.
struct MovingPlaces {
  std::vector<std::string> by_stage{"", "", "", ""};
  std::uint64_t number = 1;
  std::map<std::string, EnsembleDeclaration> told;

  EnsembleOptions Options() {
    EnsembleOptions options;
    options.places = [this](const PipelineDeclaration& pipeline) {
      const auto stages = static_cast<std::ptrdiff_t>(pipeline.stages.size());
      return std::vector<std::string>(by_stage.begin(), by_stage.begin() + stages);
    };
    options.places_number = [this] { return number; };
    options.describe = [this](const EnsembleDeclaration& inner) {
      told[inner.model.name] = inner;
      return Expected<std::string>(inner.model.name);
    };
    options.read_described = [this](std::string_view text) -> Expected<EnsembleDeclaration> {
      return told.at(std::string(text));
    };
    return options;
  }
};

// One life in virtual time, on one thread.
class Life {
 public:
  explicit Life(std::uint64_t seed, bool moves = false)
      : rng_(Rng::Stream(seed, "ensemble/soak")),
        moves_(moves),
        bench_(moves ? places_.Options() : EnsembleOptions()) {
    DeclareAll(bench_);
    bench_.steps.refuses = [this](const ModelSpec&) { return Chance(0.01); };
  }

  void Run(int calls) {
    while (made_ < calls) {
      Step();
      bench_.Pass(Micros(static_cast<std::int64_t>(rng_.Below(400))));
    }
    for (const ModelSpec& model : Models()) bench_.steps.Add(model);
    while (!bench_.steps.held.empty()) EndOne();
    bench_.Pass(Seconds(1));
    EXPECT_EQ(answered_, made_);
    EXPECT_EQ(twice_, 0);
    EXPECT_EQ(bench_.service->unfinished(), 0u);
    EXPECT_TRUE(bench_.service->Find("all", -1).has_value());
    for (const auto& storage : storages_) EXPECT_TRUE(storage.expired()) << "an answer is kept";
    // That the life was one: each kind of end came.
    EXPECT_GT(met_, calls / 10);
    EXPECT_GT(dropped_, calls / 100);
    EXPECT_GT(cancelled_, calls / 100);
    EXPECT_EQ(groups_ > calls / 20, moves_);
  }

 private:
  bool Chance(double p) { return rng_.Uniform() < p; }

  void Move() {
    for (std::string& each : places_.by_stage) each = Chance(0.7) ? "s" : "";
    ++places_.number;
  }

  // A group that was asked for runs here, by its steps' routes, or as on another node.
  void RunGroup(CallId id) {
    ++groups_;
    InferCall call = bench_.steps.TakeOut(id).call;
    const auto group = std::move(call.group);
    call.group = nullptr;
    if (Chance(0.3)) {
      if (auto entered = bench_.service->Enter(group->described)) {
        call.model = *std::move(entered);
        bench_.service->Infer(std::move(call));
        return;
      }
    }
    const auto stop = group->run(
        std::move(call), Chance(0.5) ? StepGroup::Where::kHere : StepGroup::Where::kByRoutes);
    if (Chance(0.05)) stop();
  }

  void Step() {
    if (moves_ && Chance(0.002)) Move();
    bench_.steps.runs_on = Chance(0.5);
    const double what = rng_.Uniform();
    if (what < 0.25) return Call();
    if (what < 0.28 && !open_.empty()) {
      return bench_.service->Cancel(open_[rng_.Below(open_.size())]);
    }
    if (what < 0.285) {
      bench_.steps.models.erase("crop");
      return;
    }
    if (what < 0.31) return bench_.steps.Add(Models()[1]);
    if (!bench_.steps.held.empty()) EndOne();
  }

  void Call() {
    const auto found = bench_.service->Find(kEnsembles[rng_.Below(3)], -1);
    if (!found) return;
    InferCall call;
    call.model = *found;
    const auto bytes = Floats({1, 2});
    storages_.push_back(bytes);
    call.inputs = {{"x", DataType::kFp32, {2}, BytesIn(*bytes)}};
    call.keepalive = bytes;
    call.received = bench_.now;
    if (Chance(0.2)) call.limit.Tighten(Micros(static_cast<std::int64_t>(rng_.Below(30'000))));
    auto count = std::make_shared<int>(0);
    call.reply = [this, count](InferReply&& reply) {
      twice_ += ++*count > 1;
      ++answered_;
      met_ += reply.served.outcome == Outcome::kMet;
      dropped_ += reply.served.outcome == Outcome::kShed;
      cancelled_ += reply.served.outcome == Outcome::kCancelled;
    };
    ++made_;
    const CallId id = bench_.service->Infer(std::move(call));
    if (open_.size() < 64)
      open_.push_back(id);
    else
      open_[rng_.Below(open_.size())] = id;
  }

  void EndOne() {
    const auto& held = bench_.steps.held[rng_.Below(bench_.steps.held.size())];
    const CallId id = held.id;
    const double what = rng_.Uniform();
    if (what < 0.02) {
      return bench_.steps.End(id, ErrorCode::kInternal, "failed", Outcome::kError);
    }
    if (what < 0.04) {
      return bench_.steps.End(id, ErrorCode::kUnavailable, "shed", Outcome::kShed);
    }
    if (what < 0.06) {
      return bench_.steps.End(id, ErrorCode::kDeadlineExceeded, "late", Outcome::kExpired);
    }
    if (held.call.group != nullptr) return RunGroup(id);
    std::int64_t rows = 1;
    if (held.call.model->name == "find") rows = static_cast<std::int64_t>(rng_.Below(8));
    if (held.call.model->name == "join") rows = held.call.inputs[0].shape[0];
    if (Chance(0.005)) rows += 1;  // what no step expects
    bench_.steps.Answer(id, {{{rows, 2}, std::vector<float>(static_cast<std::size_t>(rows) * 2)}});
    storages_.push_back(bench_.steps.last_storage);
    bench_.steps.last_storage = nullptr;
    if (storages_.size() > 10'000) {
      std::erase_if(storages_, [](const auto& storage) { return storage.expired(); });
    }
  }

  Rng rng_;
  const bool moves_;
  MovingPlaces places_;
  EnsembleBench bench_;
  int groups_ = 0;
  std::vector<CallId> open_;
  std::vector<std::weak_ptr<const void>> storages_;
  int made_ = 0;
  int answered_ = 0;
  int twice_ = 0;
  int met_ = 0;
  int dropped_ = 0;
  int cancelled_ = 0;
};

TEST(EnsembleSoak, AnswersEachCallOnceWhateverFails) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Life(seed).Run(CasesHere(25'000));
  }
}

TEST(EnsembleSoak, AnswersEachCallOnceWhereStepsGoAsOneAndApart) {
  for (const std::uint64_t seed : {5, 6, 7, 8}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Life(seed, true).Run(CasesHere(25'000));
  }
}

// Steps that two threads run: replies come from there, or inside Infer.
class ThreadedSteps final : public PlainService {
 public:
  ThreadedSteps() {
    for (ModelSpec& model : Models()) {
      const std::string name = model.name;
      models_[name] = std::make_shared<const ModelSpec>(std::move(model));
    }
    for (int i = 0; i < 2; ++i) {
      threads_.emplace_back([this, i] { Work(static_cast<std::uint64_t>(i)); });
    }
  }
  ~ThreadedSteps() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t) const override {
    return models_.find(model)->second;
  }
  CallId Infer(InferCall&& call) override {
    const CallId id = next_.fetch_add(1) & 0x7fffffff;
    if (id % 16 == 0) {
      Reply(std::move(call), 0);
      return id;
    }
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(call));
    }
    wake_.notify_one();
    return id;
  }

 private:
  void Work(std::uint64_t seed) {
    Rng rng = Rng::Stream(seed, "ensemble/threads");
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      InferCall call = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      Reply(std::move(call), static_cast<std::int64_t>(rng.Below(6)));
      lock.lock();
    }
  }
  static void Reply(InferCall&& call, std::int64_t rows) {
    InferReply reply;
    if (call.model->name == "join") rows = call.inputs[0].shape[0];
    if (call.model->name == "crop") rows = 1;
    const auto bytes = Floats(std::vector<float>(static_cast<std::size_t>(rows) * 2));
    reply.outputs = {{call.model->outputs[0].name, DataType::kFp32, {rows, 2}, {BytesIn(*bytes)}}};
    reply.storage = bytes;
    const auto answer = std::move(call.reply);
    answer(std::move(reply));
  }

  std::map<std::string, std::shared_ptr<const ModelSpec>, std::less<>> models_;
  std::atomic<CallId> next_{1};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<InferCall> waiting_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

TEST(EnsembleSoak, AnswersFromManyThreads) {
  constexpr int kCallers = 3;
  constexpr int kCalls = 2000;
  std::atomic<int> answered{0};
  std::atomic<int> served{0};
  {
    ThreadedSteps steps;
    EnsembleFolders folders;
    folders.list = [] { return std::vector<std::string>{"each"}; };
    folders.read = [](const std::string& name,
                      const std::string&) -> Expected<std::vector<EnsembleDeclaration>> {
      EnsembleDeclaration declared{
          FloatModel(name, 0, {{"x", DataType::kFp32, {2}}}, {{"y", DataType::kFp32, {-1, 2}}}),
          RowsOf(AnswerRule::kEach, true)};
      declared.pipeline.slo = Seconds(60);
      if (Status linked = LinkStages(declared); !linked) return std::unexpected(linked.error());
      return std::vector{declared};
    };
    EnsembleService service(steps, {}, folders);
    service.Open({"*"});
    std::vector<std::thread> callers;
    for (int c = 0; c < kCallers; ++c) {
      callers.emplace_back([&, c] {
        for (int i = 0; i < kCalls; ++i) {
          InferCall call;
          call.model = *service.Find("each", -1);
          const auto bytes = Floats({1, 2});
          call.inputs = {{"x", DataType::kFp32, {2}, BytesIn(*bytes)}};
          call.keepalive = bytes;
          call.received = std::chrono::steady_clock::now();
          call.reply = [&](InferReply&& reply) {
            served += reply.status.has_value();
            ++answered;
          };
          const CallId id = service.Infer(std::move(call));
          if ((i + c) % 7 == 0) service.Cancel(id);
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    while (service.calls() > 0) std::this_thread::yield();
    while (answered < kCallers * kCalls) std::this_thread::yield();
  }
  EXPECT_EQ(answered, kCallers * kCalls);
  EXPECT_GT(served, kCallers * kCalls / 2);
}

}  // namespace
}  // namespace tactus
