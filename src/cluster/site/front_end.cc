#include "cluster/site/front_end.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "cluster/site/remote_engine.h"
#include "cluster/site/scheduler_link.h"
#include "cluster/site/site_service.h"
#include "platform/repeated_task.h"
#include "site/granted_policy.h"
#include "site/site_reach.h"

namespace tactus {
namespace {

// Batches of one front end on one worker at a time: more than it has lanes, for an answer is on its
// way while the next batch begins.
constexpr int kSlots = 64;

}  // namespace

struct SiteFrontEnd::Body final : OfferPort {
  explicit Body(Options with)
      : options(std::move(with)),
        real(book, options.tls, false, kSlots),
        made_up(book, options.tls, true, kSlots),
        link({.schedulers = options.schedulers,
              .of_site = options.schedulers,
              .tls = options.tls,
              .hear = [this](std::uint32_t s, ToPeer&& message) { Hear(s, std::move(message)); },
              .gone =
                  [this](std::uint32_t s) {
                    const std::lock_guard lock(follow_mutex);
                    followed.Lost(s);
                  },
              .say = options.say,
              .now = [this] { return Now(); }}),
        runtime(RuntimeOptionsHere(), Parts()),
        service(runtime,
                {.site = [this] { return WhyNotReady(); },
                 .model = [this](std::string_view model,
                                 std::int64_t version) { return WhyNotReady(model, version); }}) {}

  RuntimeOptions RuntimeOptionsHere() const {
    RuntimeOptions runtime_options;
    runtime_options.lanes = options.workers;
    runtime_options.slots = kSlots;
    runtime_options.queue_capacity = options.queue_capacity;
    // The scheduler gives up what cannot be met; here ends what nobody took.
    runtime_options.expiry = Expiry::kPassed;
    runtime_options.call_capacity = options.call_capacity;
    runtime_options.pending_bytes = options.pending_bytes;
    runtime_options.pin = false;
    runtime_options.revive_after = Millis(50);
    runtime_options.watch.multiple = 0;  // the workers watch their own runs
    return runtime_options;
  }
  RuntimeParts Parts() {
    return {.policy = std::make_unique<GrantedPolicy>(book, *this),
            .engine_for = [this](std::string_view platform) -> Expected<Engine*> {
              return platform == "emulated" ? &made_up : &real;
            },
            .known_rows = [this](const ModelSpec& spec) { return RowsOf(spec.name); },
            .journal = options.journal,
            .observer = options.observer,
            .log = options.say};
  }
  std::optional<ProfileTable::ModelRows> RowsOf(const std::string& model) {
    const std::lock_guard lock(mutex);
    const auto known = models.find(model);
    if (known == models.end()) return std::nullopt;
    return known->second.rows;
  }

  // In turns of the dispatcher.
  void Send(const Offer& offer) override {
    const std::lock_guard lock(out_mutex);
    out.offers.push_back(offer);
    Ring();
  }
  void Send(const VoidRows& rows) override {
    const std::lock_guard lock(out_mutex);
    out.voids.push_back(rows);
    Ring();
  }
  void Ring() {
    if (std::exchange(rung, true)) return;
    out_changed.notify_one();
  }

  std::optional<std::string> WhyNotReady() const;
  std::optional<std::string> WhyNotReady(std::string_view model, std::int64_t version) const;
  TimePoint Now() const { return runtime.At(std::chrono::steady_clock::now()); }
  void Hear(std::uint32_t scheduler, ToPeer&& message);
  void SendOffers();
  Duration ServeModels();

  const Options options;
  GrantBook book;
  RemoteEngine real;
  RemoteEngine made_up;

  std::mutex follow_mutex;
  FollowedTerm followed;
  std::atomic<Term> term{0};
  mutable std::mutex reach_mutex;
  SiteReach reach;  // under the mutex: what the scheduler that is followed says

  std::mutex out_mutex;
  std::condition_variable out_changed;
  FromPeer out;
  Term out_term = 0;  // that `out` is for
  std::uint32_t out_to = 0;
  bool rung = false;
  bool stop = false;

  std::mutex mutex;                 // of the models and the workers
  std::set<std::uint32_t> workers;  // their places
  std::condition_variable models_changed;
  std::map<std::string, WorkerModel> models;  // by name: what workers serve now
  std::map<std::string, ModelSpec> served;    // here

  SchedulerLink link;
  Runtime runtime;
  SiteService service;
  std::thread sender;
  RepeatedTask loader;
  bool started = false;
};

std::optional<std::string> SiteFrontEnd::Body::WhyNotReady() const {
  const std::lock_guard lock(reach_mutex);
  return reach.WhyNot(Now());
}

std::optional<std::string> SiteFrontEnd::Body::WhyNotReady(std::string_view model,
                                                           std::int64_t version) const {
  const std::lock_guard lock(reach_mutex);
  return reach.WhyNot(Now(), model, version);
}

// The lock is kept while workers are taken over: of two leaders the later one's hold.
void SiteFrontEnd::Body::Hear(std::uint32_t scheduler, ToPeer&& message) {
  const std::lock_guard lock(follow_mutex);
  if (followed.Older(message)) link.Send(scheduler, {.seen = followed.term()});
  const bool leads = followed.Hear(scheduler, message);
  if (!followed.Follows(scheduler, message)) return;
  {
    const std::lock_guard reach_lock(reach_mutex);
    reach.Heard(Now());
    if (message.has_workers) reach.Serve(message.models);
  }
  if (leads) {
    {
      const std::lock_guard out_lock(out_mutex);
      out = {};  // every unanswered request is offered again, to whom leads now
      out_term = message.term;
      out_to = scheduler;
    }
    term.store(message.term);
    book.Lead(message.term);
  }
  if (message.has_workers) {
    real.SetWorkers(message.workers);
    made_up.SetWorkers(message.workers);
    const std::lock_guard models_lock(mutex);
    workers.clear();
    for (const WorkerPlace& place : message.workers) workers.insert(place.worker);
    models.clear();
    for (WorkerModel& model : message.models) models[model.spec.name] = std::move(model);
    models_changed.notify_all();
    loader.Wake();
  }
  const bool nudge = leads || !message.grants.empty() || !message.refusals.empty();
  for (Grant& grant : message.grants) book.Take(std::move(grant));
  for (const Refusal& refusal : message.refusals) book.Take(message.term, refusal);
  if (nudge) runtime.Nudge();
}

void SiteFrontEnd::Body::SendOffers() {
  std::unique_lock lock(out_mutex);
  for (;;) {
    out_changed.wait(lock, [this] { return stop || rung; });
    if (stop) return;
    rung = false;
    FromPeer message = std::exchange(out, {});
    message.seen = out_term;
    const std::uint32_t to = out_to;
    const bool leaderless = out_term == 0;
    lock.unlock();
    if (!leaderless) link.Send(to, message);
    lock.lock();
  }
}

Duration SiteFrontEnd::Body::ServeModels() {
  std::vector<ModelSpec> fresh;
  {
    const std::lock_guard lock(mutex);
    for (const auto& [name, model] : models) {
      const auto known = served.find(name);
      if (known == served.end() || known->second.config != model.spec.config ||
          known->second.version != model.spec.version) {
        fresh.push_back(model.spec);
      }
    }
  }
  std::vector<ModelSpec> loaded;
  for (const ModelSpec& spec : fresh) {
    const Status serves = runtime.Serve(spec);
    if (serves) loaded.push_back(spec);
    if (!serves && options.say) options.say("model '" + spec.name + "': " + serves.error().message);
  }
  const std::lock_guard lock(mutex);
  for (ModelSpec& spec : loaded) served[spec.name] = std::move(spec);
  models_changed.notify_all();
  return RepeatedTask::kUntilWoken;
}

SiteFrontEnd::SiteFrontEnd(Options options) : body_(std::make_unique<Body>(std::move(options))) {}

SiteFrontEnd::~SiteFrontEnd() { Stop(); }

void SiteFrontEnd::Start() {
  body_->started = true;
  body_->runtime.Start();
  body_->sender = std::thread([this] { body_->SendOffers(); });
  body_->loader.Start("models", [this] { return body_->ServeModels(); });
  body_->link.Start();
}

bool SiteFrontEnd::AwaitModels(Duration most) {
  std::unique_lock lock(body_->mutex);
  return body_->models_changed.wait_for(lock, most, [this] { return !body_->served.empty(); });
}

Expected<ModelSpec> SiteFrontEnd::AwaitModel(const std::string& model, Duration most) {
  Body& body = *body_;
  std::unique_lock lock(body.mutex);
  const bool there = body.models_changed.wait_for(
      lock, most, [&] { return body.models.contains(model) && body.served.contains(model); });
  if (there) return body.models[model].spec;
  return Fail(ErrorCode::kUnavailable, "no worker of the site serves model '" + model +
                                           "': put it into the repositories of its workers");
}

void SiteFrontEnd::Stop(Duration grace) {
  Body& body = *body_;
  if (!std::exchange(body.started, false)) return;
  body.loader.Stop();
  body.runtime.Stop(grace);
  body.link.Stop();
  {
    const std::lock_guard lock(body.out_mutex);
    body.stop = true;
  }
  body.out_changed.notify_all();
  body.sender.join();
}

InferenceService& SiteFrontEnd::service() { return body_->service; }

std::optional<std::string> SiteFrontEnd::WhyNotReady() const { return body_->WhyNotReady(); }

std::vector<std::string> SiteFrontEnd::Unserved() const {
  std::vector<std::string> names;
  if (WhyNotReady()) return names;
  const std::lock_guard lock(body_->mutex);
  for (const auto& [name, spec] : body_->served) {
    if (!body_->models.contains(name)) names.push_back(name);
  }
  return names;
}

bool SiteFrontEnd::HasWorker(LaneId lane) const {
  const std::lock_guard lock(body_->mutex);
  return body_->workers.contains(lane.value());
}

Runtime& SiteFrontEnd::runtime() { return body_->runtime; }

Term SiteFrontEnd::term() const { return body_->term.load(); }

}  // namespace tactus
