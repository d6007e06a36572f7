// A whole site in one process and in virtual time: schedulers, front ends and workers, each with a
// clock of its own, over connections that delay and break. What runs in them is what runs in
// service; only messages and batches are made up here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dispatch/dispatcher.h"
#include "policies/registry.h"
#include "site/granted_batches.h"
#include "site/granted_policy.h"
#include "site/ordered_policy.h"
#include "site/processes_test.h"
#include "site/served_test.h"
#include "site/site_scheduler.h"

namespace tactus::site_test {

struct WorldOptions {
  std::uint64_t seed = 1;
  std::uint32_t schedulers = 2;
  std::uint32_t front_ends = 2;
  std::uint32_t workers = 3;
  int lanes = 2;                // of a worker
  Duration delay = Micros(80);  // of a message; up to three times as long
  std::string policy = "horizon";
  // The journal of each term that a scheduler leads; empty: none.
  std::function<Journal*(Term)> journal = {};
};

inline CentralScheduler::Options CentralOptions() {
  // As in service: the way to the worker and back is in what a granted batch takes.
  return {.dispatcher = {.follow = {.on = true}}, .lanes = 32, .workers = 8};
}

class SiteWorld : public World {
 public:
  explicit SiteWorld(WorldOptions options)
      : World(options.seed, options.delay), o_(std::move(options)) {
    for (std::uint32_t i = 0; i < o_.workers; ++i)
      workers_.push_back(std::make_unique<Worker>(*this, i));
    for (std::uint32_t i = 0; i < o_.front_ends; ++i) {
      front_ends_.push_back(std::make_unique<FrontEnd>(*this, i));
    }
    for (std::uint32_t i = 0; i < o_.schedulers; ++i) {
      schedulers_.push_back(std::make_unique<Scheduler>(*this, i));
    }
    for (std::uint32_t i = 0; i < o_.schedulers; ++i) BeginScheduler(i);
  }

  void Arrive(std::uint32_t f, ModelId model, Duration slo) { front_ends_[f]->Arrive(model, slo); }
  void CancelOne(std::uint32_t f) { front_ends_[f]->CancelOne(); }

  void KillScheduler(std::uint32_t i) {
    Scheduler& s = *schedulers_[i];
    if (!s.alive) return;
    Note("kill scheduler " + std::to_string(i));
    Die(s);
    const Term led = s.core->leads() ? s.core->term() : 0;
    s.core.reset();
    for (auto& [peer, end] : s.peers)
      Break(*end.connection, [this, i, peer = peer, end = end] { Hangup(end, peer, i); });
    s.peers.clear();
    for (auto& other : schedulers_) {
      if (!other->alive || other.get() == &s) continue;
      clock_.At(clock_.now() + Delay(), [this, other = other.get(), led] {
        if (other->alive) other->core->OnSchedulerGone(led, other->Now()), Step(*other);
      });
    }
  }
  void StartScheduler(std::uint32_t i) {
    if (schedulers_[i]->alive) return;
    Note("start scheduler " + std::to_string(i));
    schedulers_[i]->alive = true;
    BeginScheduler(i);
  }
  void StallScheduler(std::uint32_t i, Duration length) {
    Note("stall scheduler " + std::to_string(i));
    schedulers_[i]->stalled_until = clock_.now() + length;
  }
  void KillWorker(std::uint32_t i) {
    Worker& w = *workers_[i];
    if (!w.alive) return;
    Note("kill worker " + std::to_string(i));
    Die(w);
    for (auto& front_end : front_ends_) front_end->Lose(i);
    for (std::uint32_t s = 0; s < o_.schedulers; ++s) CloseAt(s, w.places[s]);
  }
  void StartWorker(std::uint32_t i) {
    if (workers_[i]->alive) return;
    Note("start worker " + std::to_string(i));
    dead_.push_back(std::move(workers_[i]));  // events may still know it
    workers_[i] = std::make_unique<Worker>(*this, i, dead_.back()->life);
    for (std::uint32_t s = 0; s < o_.schedulers; ++s) Join(s, Kind::kWorker, i);
  }
  // That of a front end or a worker to a scheduler, which is there again a little later.
  void CutFromScheduler(bool front_end, std::uint32_t i, std::uint32_t s) {
    Member& member = front_end ? static_cast<Member&>(*front_ends_[i]) : *workers_[i];
    if (!member.alive || !member.places[s].valid()) return;
    CloseAt(s, std::exchange(member.places[s], PeerId{}));
    member.followed.Lost(s);
    After(member, Millis(20), [this, &member, s] {
      if (!member.places[s].valid()) Join(s, member.kind, member.index);
    });
  }
  // The connection of a front end to a worker breaks, with all that is under way on it.
  void Cut(std::uint32_t f, std::uint32_t w) { front_ends_[f]->Lose(w); }

  std::optional<std::uint32_t> leader() const {
    std::optional<std::uint32_t> leader;
    Term term = 0;
    for (std::uint32_t i = 0; i < o_.schedulers; ++i) {
      const Scheduler& s = *schedulers_[i];
      if (!s.alive || !s.core->leads() || s.core->term() < term) continue;
      leader = i;
      term = s.core->term();
    }
    return leader;
  }
  const WorldOptions& options() const { return o_; }
  const Counts& counts() const { return counts_; }
  std::size_t held() const {
    std::size_t held = 0;
    for (const auto& f : front_ends_) held += f->dispatcher.waiting() + f->dispatcher.running();
    return held;
  }
  std::vector<TimePoint> launches;  // of granted batches

 private:
  enum class Kind { kFrontEnd, kWorker };
  struct PeerEnd {
    Kind kind = Kind::kWorker;
    std::uint32_t index = 0;
    std::uint32_t life = 0;
    std::shared_ptr<Connection> connection;
  };

  struct Scheduler : Process {
    Scheduler(SiteWorld& of, std::uint32_t i) : Process(of), index(i) { ahead = Seconds(3600 * i); }
    const std::uint32_t index;
    std::unique_ptr<SiteScheduler> core;
    std::map<PeerId, PeerEnd> peers;
  };

  // A front end or a worker, as far as it speaks to schedulers.
  struct Member : Process {
    Member(SiteWorld& of, Kind what, std::uint32_t i)
        : Process(of), site(of), kind(what), index(i), places(of.o_.schedulers) {}
    SiteWorld& site;
    const Kind kind;
    const std::uint32_t index;
    FollowedTerm followed;
    std::vector<PeerId> places;  // by scheduler: what it is called there; invalid: not connected
    FromPeer out;
    void Flush() {
      FromPeer message = std::exchange(out, {});
      const bool empty = message.join.empty() && message.offers.empty() && message.voids.empty() &&
                         message.done.empty();
      if (empty || followed.term() == 0) return;
      message.seen = followed.term();
      site.SendToScheduler(*this, followed.leader(), std::move(message));
    }
  };

  struct Worker : Member, Outbox, DonePort {
    struct Row {
      std::uint32_t front_end = 0;
      BatchId batch;
      std::shared_ptr<Connection> connection;
    };
    Worker(SiteWorld& of, std::uint32_t i, std::uint32_t its_life = 1)
        : Member(of, Kind::kWorker, i),
          policy(batches, *this, *MakePolicy("horizon")),
          dispatcher({.expiry = Expiry::kNever}, std::vector<LaneSpec>(of.o_.lanes), policy,
                     *this) {
      ahead = Seconds(-60 * (i + 1));
      life = its_life;
      dispatcher.Configure(Served());
    }
    GrantedBatches batches;
    OrderedPolicy policy;
    Dispatcher dispatcher;
    std::uint64_t next = 0;
    std::map<std::uint64_t, Row> rows;  // by RequestId

    void Take(ModelId m, const GrantBook::Launched& granted, int count, Row row) {
      const auto place =
          batches.Enter({granted.key, granted.exit, granted.rows, Now() + Millis(50)});
      for (int i = 0; i < count; ++i) {
        const RequestId id{next++};
        rows[id.value()] = row;
        dispatcher.Arrive(
            m, {.id = id, .arrival = Now(), .deadline = place.deadline, .shape = place.group});
      }
      StepNow();
    }
    void StepNow() {
      const TimePoint next_step = dispatcher.Step(Now());
      Flush();
      WakeAt(next_step, [this] { StepNow(); });
    }
    void Send(const BatchDone& done) override { out.done.push_back(done); }
    void Launch(const Batch& batch) override {
      const double jitter = 0.9 + 0.2 * world.random().Uniform();
      const Duration took = FromSeconds(ToSeconds(batch.expected_end - batch.start) * jitter);
      site.launches.push_back(world.clock().now());
      world.After(*this, took, [this, lane = batch.lane, id = batch.id, began = Now()] {
        dispatcher.Finish(lane, id, {.started = began, .ended = Now()}, Now());
        StepNow();
      });
    }
    void Abort(LaneId, BatchId) override {}
    void Reject(ModelId, const Request& request, DropReason) override { Answer(request, false); }
    void Complete(const Batch& batch, const BatchReport&) override {
      for (const Request& request : batch.requests) Answer(request, true);
    }
    void Answer(const Request& request, bool fine) {
      const Row row = rows.at(request.id.value());
      rows.erase(request.id.value());
      FrontEnd& to = *site.front_ends_[row.front_end];
      world.Deliver(row.connection, 1, to, [&to, row, fine] { to.Answered(row.batch, fine); });
    }
  };

  struct FrontEnd : Member, Outbox, OfferPort {
    struct Flight {
      LaneId lane;
      std::uint32_t worker = 0;
      int left = 0;
      bool fine = true;
      TimePoint began;
    };
    FrontEnd(SiteWorld& of, std::uint32_t i)
        : Member(of, Kind::kFrontEnd, i),
          policy(book, *this),
          dispatcher({.expiry = Expiry::kPassed}, std::vector<LaneSpec>(16, LaneSpec{.slots = 8}),
                     policy, *this),
          wires(of.o_.workers) {
      ahead = Seconds(i);
      dispatcher.Configure(Served());
    }
    GrantBook book;
    GrantedPolicy policy;
    Dispatcher dispatcher;
    std::vector<std::shared_ptr<Connection>> wires;  // by worker; null: none
    std::vector<WorkerPlace> places_of;
    std::map<std::uint64_t, Flight> flights;  // by BatchId
    std::vector<std::uint8_t> ended;          // by RequestId: how often

    void Arrive(ModelId m, Duration slo) {
      const RequestId id{ended.size()};
      ended.push_back(0);
      ++site.counts_.accepted;
      dispatcher.Arrive(m, {.id = id, .arrival = Now(), .deadline = Now() + slo});
      StepNow();
    }
    void CancelOne() {
      if (ended.empty()) return;
      const std::uint64_t back = world.random().Below(std::min<std::size_t>(ended.size(), 40));
      const RequestId id{ended.size() - 1 - back};
      for (ModelId::rep m = 0; m < 3; ++m) dispatcher.Cancel(ModelId{m}, id);
      StepNow();
    }
    void StepNow() {
      const TimePoint next_step = dispatcher.Step(Now());
      Flush();
      WakeAt(next_step, [this] { StepNow(); });
    }
    void Send(const Offer& offer) override { out.offers.push_back(offer); }
    void Send(const VoidRows& rows) override { out.voids.push_back(rows); }

    void Launch(const Batch& batch) override {
      const auto granted = book.TakeLaunched(batch.id);
      std::uint32_t to = static_cast<std::uint32_t>(-1);
      for (const WorkerPlace& place : places_of) {
        if (granted && place.worker == granted->worker)
          to = static_cast<std::uint32_t>(std::stoul(place.name));
      }
      const int count = static_cast<int>(batch.requests.size());
      flights[batch.id.value()] = {batch.lane, to, count, true, Now()};
      world.Note("f" + std::to_string(index) + " runs " + std::to_string(count));
      const bool reachable = to < wires.size() && site.workers_[to]->alive && wires[to] != nullptr;
      if (!reachable) return world.After(*this, Micros(50), [this, to] { Lose(to); });
      Worker& worker = *site.workers_[to];
      const Worker::Row row{index, batch.id, wires[to]};
      world.Deliver(wires[to], 0, worker,
                    [&site = site, to, m = batch.model, g = *granted, count, row] {
                      site.workers_[to]->Take(m, g, count, row);
                    });
    }
    void Abort(LaneId, BatchId) override {}
    void End(const Request& request, std::uint64_t Counts::*how) {
      Counts& counts = site.counts_;
      if (ended[request.id.value()]++ > 0) ++counts.doubled;
      ++counts.ended;
      ++(counts.*how);
    }
    void Reject(ModelId, const Request& request, DropReason reason) override {
      End(request, reason == DropReason::kCancelled ? &Counts::cancelled : &Counts::refused);
    }
    void Complete(const Batch& batch, const BatchReport& report) override {
      for (const Request& request : batch.requests) {
        End(request, report.status != BatchStatus::kOk ? &Counts::refused
                     : Now() <= request.deadline       ? &Counts::met
                                                       : &Counts::late);
      }
    }
    void Answered(BatchId batch, bool fine) {
      const auto at = flights.find(batch.value());
      if (at == flights.end()) return;
      at->second.fine = at->second.fine && fine;
      if (--at->second.left > 0) return;
      const Flight flight = at->second;
      flights.erase(at);
      dispatcher.Finish(flight.lane, batch,
                        {.started = flight.began,
                         .ended = Now(),
                         .status = flight.fine ? BatchStatus::kOk : BatchStatus::kFailed},
                        Now());
      StepNow();
    }
    // The worker is out of reach: what runs there is lost; a little later it is tried again.
    void Lose(std::uint32_t worker) {
      if (worker < wires.size() && wires[worker] != nullptr) wires[worker]->open = false;
      std::vector<std::pair<std::uint64_t, Flight>> lost;
      for (const auto& [batch, flight] : flights) {
        if (flight.worker == worker) lost.emplace_back(batch, flight);
      }
      for (const auto& [batch, flight] : lost) {
        flights.erase(batch);
        dispatcher.Finish(flight.lane, BatchId{batch},
                          {.started = flight.began, .ended = Now(), .status = BatchStatus::kLost},
                          Now());
        world.After(*this, Millis(50), [this, lane = flight.lane] {
          dispatcher.SetLaneOpen(lane, true);
          StepNow();
        });
      }
      if (worker < wires.size()) wires[worker] = std::make_shared<Connection>();
      StepNow();
    }
  };

  void CloseAt(std::uint32_t s, PeerId peer) {
    Scheduler& scheduler = *schedulers_[s];
    const auto end = scheduler.peers.find(peer);
    if (!scheduler.alive || end == scheduler.peers.end()) return;
    Break(*end->second.connection, [this, &scheduler, peer, life = scheduler.life] {
      Run(scheduler, life, [this, &scheduler, peer] {
        scheduler.core->OnClosed(peer, scheduler.Now());
        scheduler.peers.erase(peer);
        Step(scheduler);
      });
    });
  }
  Member& MemberOf(const PeerEnd& end) {
    if (end.kind == Kind::kWorker) return *workers_[end.index];
    return *front_ends_[end.index];
  }
  void Hangup(const PeerEnd& end, PeerId peer, std::uint32_t scheduler) {
    Member& member = MemberOf(end);  // which may be connected anew by now
    if (member.life == end.life && member.places[scheduler] == peer) member.places[scheduler] = {};
  }
  void BeginScheduler(std::uint32_t i) {
    Scheduler& s = *schedulers_[i];
    s.core = std::make_unique<SiteScheduler>(
        SiteScheduler::Options{
            .takeover = {.rank = i, .schedulers = o_.schedulers},
            .central = CentralOptions(),
            .policy = [this] { return *MakePolicy(o_.policy); },
            .send = [this, i](PeerId to,
                              ToPeer&& message) { SendToMember(i, to, std::move(message)); },
            .say = [this,
                    i](const std::string& line) { Note("s" + std::to_string(i) + " " + line); },
            .journal = o_.journal},
        s.Now());
    for (std::uint32_t f = 0; f < o_.front_ends; ++f) Join(i, Kind::kFrontEnd, f);
    for (std::uint32_t w = 0; w < o_.workers; ++w) {
      if (workers_[w]->alive) Join(i, Kind::kWorker, w);
    }
    Step(s);
  }
  void Join(std::uint32_t s, Kind kind, std::uint32_t index) {
    Scheduler& scheduler = *schedulers_[s];
    if (!scheduler.alive) return;
    const PeerId peer{next_peer_++};
    PeerEnd end{kind, index, 0, std::make_shared<Connection>()};
    Member& member = MemberOf(end);
    end.life = member.life;
    member.places[s] = peer;
    scheduler.peers[peer] = end;
    Deliver(end.connection, 0, scheduler, [this, &scheduler, peer] {
      scheduler.core->OnConnected(peer, scheduler.Now());
      Step(scheduler);
    });
  }
  void Step(Scheduler& s) {
    const bool led = s.core->leads();
    const TimePoint next = s.core->Step(s.Now());
    if (s.core->leads()) Beat(s);
    if (led != s.core->leads())
      Note("s" + std::to_string(s.index) + " leads " + std::to_string(s.core->term()));
    s.WakeAt(next, [this, &s] { Step(s); });
  }
  // Other schedulers hear what peers hear, beats in the main.
  void Beat(Scheduler& s) {
    for (auto& other : schedulers_) {
      if (other.get() == &s || !other->alive) continue;
      ToPeer beat{.term = s.core->term(), .leads = true};
      After(*other, Delay(), [this, &other = *other, beat] {
        other.core->OnScheduler(beat, other.Now());
        Step(other);
      });
    }
  }
  void SendToMember(std::uint32_t s, PeerId to, ToPeer&& message) {
    const PeerEnd& end = schedulers_[s]->peers.at(to);
    Member& member = MemberOf(end);
    if (member.life != end.life) return;
    Deliver(end.connection, 1, member,
            [this, &member, s, message = std::move(message)] { Hear(member, s, message); });
  }
  void SendToScheduler(Member& member, std::uint32_t s, FromPeer&& message) {
    const PeerId peer = member.places[s];
    Scheduler& scheduler = *schedulers_[s];
    const auto end = scheduler.peers.find(peer);
    if (!peer.valid() || end == scheduler.peers.end()) return;
    for (Offer& offer : message.offers)
      offer.deadline -= member.ahead;  // time left is what travels
    Deliver(end->second.connection, 0, scheduler,
            [this, &scheduler, peer, message = std::move(message)]() mutable {
              for (Offer& offer : message.offers) offer.deadline += scheduler.ahead;
              scheduler.core->OnMessage(peer, message, scheduler.Now());
              Step(scheduler);
            });
  }
  void Hear(Member& member, std::uint32_t s, const ToPeer& message) {
    const bool leads = member.followed.Hear(s, message);
    if (member.kind == Kind::kWorker) {
      auto& worker = static_cast<Worker&>(member);
      if (!leads) return;
      member.out.done.clear();
      member.out.join = {{.name = std::to_string(worker.index),
                          .address = "",
                          .lanes = o_.lanes,
                          .busy = static_cast<int>(worker.dispatcher.running()),
                          .models = Models()}};
      return member.Flush();
    }
    auto& front_end = static_cast<FrontEnd&>(member);
    if (leads) {
      member.out = {};
      front_end.book.Lead(message.term);
    }
    if (!member.followed.Follows(s, message)) return;
    if (message.has_workers) front_end.places_of = message.workers;
    for (const Grant& grant : message.grants) front_end.book.Take(grant);
    for (const Refusal& refusal : message.refusals) front_end.book.Take(message.term, refusal);
    front_end.StepNow();
  }

  const WorldOptions o_;
  Counts counts_;
  std::vector<std::unique_ptr<Scheduler>> schedulers_;
  std::vector<std::unique_ptr<FrontEnd>> front_ends_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Worker>> dead_;
  PeerId::rep next_peer_ = 0;
};

}  // namespace tactus::site_test
