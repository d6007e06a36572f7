#include "cluster/site/worker.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "cluster/site/scheduler_link.h"
#include "site/granted_batches.h"
#include "site/ordered_policy.h"

namespace tactus {
namespace {

// How often it is looked whether models came or went.
constexpr std::chrono::milliseconds kLook{200};
// After a refusal: another worker of this name may only have been about to be noticed as gone.
constexpr std::chrono::milliseconds kAskAgain{1000};

}  // namespace

struct SiteWorker::Body final : DonePort {
  explicit Body(Options with)
      : options(std::move(with)),
        link({.schedulers = options.schedulers,
              .of_site = options.schedulers,
              .tls = options.tls,
              .hear = [this](std::uint32_t s, ToPeer&& message) { Hear(s, message); },
              .gone =
                  [this](std::uint32_t s) {
                    const std::lock_guard lock(mutex);
                    followed.Lost(s);
                  },
              .say = options.say,
              .now = [] { return TimePoint{}; }}) {}

  // In a turn of the dispatcher.
  void Send(const BatchDone& batch) override {
    const std::lock_guard lock(mutex);
    done.push_back(batch);
    changed.notify_one();
  }
  void SetRunning(std::size_t batches) override {
    running.store(static_cast<int>(batches), std::memory_order_relaxed);
  }
  void Hear(std::uint32_t scheduler, const ToPeer& message) {
    const std::lock_guard lock(mutex);
    if (!message.refused.empty() && options.say) {
      options.say(options.schedulers[scheduler] + ": " + message.refused);
    }
    if (!message.refused.empty()) ask_again = std::chrono::steady_clock::now() + kAskAgain;
    if (followed.Older(message)) link.Send(scheduler, {.seen = followed.term()});
    if (!followed.Hear(scheduler, message)) return;
    introduce = true;
    done.clear();  // its lanes are those that are free as it introduces itself
    changed.notify_one();
  }
  WorkerIntroduction Introduce() const;
  void Run();

  const Options options;
  GrantedBatches batches;
  Runtime* runtime = nullptr;
  std::string address;
  std::atomic<int> running{0};
  std::mutex mutex;
  std::condition_variable changed;
  FollowedTerm followed;
  std::vector<BatchDone> done;
  bool introduce = false;
  std::optional<std::chrono::steady_clock::time_point> ask_again;  // a scheduler refused it
  bool stop = false;
  SchedulerLink link;
  std::thread thread;
};

WorkerIntroduction SiteWorker::Body::Introduce() const {
  WorkerIntroduction worker{
      .name = options.name,
      .address = address,
      .lanes = options.lanes,
      .busy = std::clamp(running.load(std::memory_order_relaxed), 0, options.lanes),
      .models = {}};
  const auto served = runtime->served_models();
  if (served == nullptr) return worker;
  for (std::size_t i = 0; i < served->models.size(); ++i) {
    const Model& model = served->models[i];
    const ModelId m{static_cast<ModelId::rep>(i)};
    const auto spec = model.loaded ? runtime->Find(model.name, -1) : nullptr;
    if (!model.loaded || !spec) continue;
    // While a new version takes the place of an old one both are there: the new one counts.
    const bool fits = model.exit_count() == static_cast<int>((*spec)->exits.size()) &&
                      model.max_batch <= std::max(1, (*spec)->max_batch);
    if (!fits) continue;
    std::erase_if(worker.models, [&](const WorkerModel& m) { return m.model.name == model.name; });
    WorkerModel told{.spec = **spec, .model = model};
    told.rows.exits = served->profile.exits(m);
    told.rows.max_batch = model.max_batch;
    told.rows.margin = served->profile.margin(m);
    for (ExitId::rep e = 0; e < static_cast<ExitId::rep>(told.rows.exits); ++e) {
      for (int b = 1; b <= model.max_batch; ++b) {
        told.rows.latency.push_back(served->profile.Latency(m, ExitId{e}, b, LaneClass{0}));
      }
    }
    worker.models.push_back(std::move(told));
  }
  return worker;
}

// The runtime is asked without the lock: while it changes models it waits for a turn, in which Send
// takes the lock.
void SiteWorker::Body::Run() {
  std::shared_ptr<const ServedModels> told;
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait_for(lock, kLook, [this] { return stop || introduce || !done.empty(); });
    if (stop) return;
    const Term term = followed.term();
    if (term == 0) continue;
    const auto now = std::chrono::steady_clock::now();
    bool join = std::exchange(introduce, false);
    if (ask_again && *ask_again <= now) {
      ask_again.reset();
      join = true;
    }
    lock.unlock();
    const auto served = runtime->served_models();
    FromPeer message{.seen = term};
    if (join || served != told) {
      message.join.push_back(Introduce());
      told = served;
    }
    lock.lock();
    if (followed.term() != term) continue;  // whoever leads now is to hear all of it
    message.done = std::exchange(done, {});
    if (message.join.empty() && message.done.empty()) continue;
    const std::uint32_t to = followed.leader();
    lock.unlock();
    link.Send(to, message);
    lock.lock();
  }
}

SiteWorker::SiteWorker(Options options) : body_(std::make_unique<Body>(std::move(options))) {}

SiteWorker::~SiteWorker() { Stop(); }

std::unique_ptr<Policy> SiteWorker::MakePolicy(std::unique_ptr<Policy> own) {
  return std::make_unique<OrderedPolicy>(body_->batches, *body_, std::move(own));
}

RowsPlace SiteWorker::Place(const GrantedPart& part, TimePoint deadline) {
  const auto place =
      body_->batches.Enter({{part.term, part.batch}, ExitId{part.exit}, part.rows, deadline});
  return {place.group, place.deadline};
}

void SiteWorker::Start(Runtime& runtime, std::string address) {
  body_->runtime = &runtime;
  body_->address = std::move(address);
  body_->thread = std::thread([this] { body_->Run(); });
  body_->link.Start();
}

void SiteWorker::Stop() {
  if (!body_->thread.joinable()) return;
  body_->link.Stop();
  {
    const std::lock_guard lock(body_->mutex);
    body_->stop = true;
  }
  body_->changed.notify_all();
  body_->thread.join();
}

}  // namespace tactus
