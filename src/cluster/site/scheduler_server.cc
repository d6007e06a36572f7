#include "cluster/site/scheduler_server.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

#include <grpcpp/grpcpp.h>

#include "base/host_port.h"
#include "base/underway.h"
#include "cluster/site/scheduler_link.h"
#include "cluster/site/schedulers_list.h"
#include "cluster/site/wire.h"
#include "cluster/site/write_queue.h"
#include "cluster/tls/channel.h"
#include "cluster/tls/tls.h"
#include "site.grpc.pb.h"

namespace tactus {
namespace {

using std::chrono::steady_clock;

TimePoint Now() { return TimePoint{steady_clock::now().time_since_epoch()}; }

}  // namespace

struct SchedulerServer::Body {
  class Peer;
  class Service;

  struct Connected {
    PeerId peer;
  };
  struct Closed {
    PeerId peer;
  };
  struct Said {
    PeerId peer;
    FromPeer message;
  };
  struct OtherSaid {
    std::uint32_t scheduler = 0;
    ToPeer message;
  };
  struct OtherGone {
    std::uint32_t scheduler = 0;
  };
  using Event = std::variant<Connected, Closed, Said, OtherSaid, OtherGone>;

  explicit Body(Options with);
  ~Body();

  void Push(Event event) {
    {
      const std::lock_guard lock(mutex);
      if (stop) return;
      events.push_back(std::move(event));
    }
    changed.notify_one();
  }
  PeerId Add(const std::shared_ptr<Peer>& peer);
  void Remove(PeerId peer);
  void Send(PeerId peer, ToPeer&& message);
  void Run();
  void Take(SiteScheduler& scheduler, Event& event);
  void Read(const SiteScheduler& scheduler);
  std::unique_ptr<SchedulerLink> LinkToOthers();

  const Options options;
  std::unique_ptr<Service> service;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<SchedulerLink> others;
  std::vector<std::uint32_t> other_ranks;  // by their place in `others`

  std::mutex mutex;  // of the next three
  std::condition_variable changed;
  std::deque<Event> events;
  bool stop = false;

  std::mutex peers_mutex;
  std::map<PeerId, std::shared_ptr<Peer>> peers;
  PeerId::rep next_peer = 0;
  Underway<Peer> underway;

  std::vector<Term> other_terms;  // by rank: what it led with last; the thread's
  mutable std::mutex reading_mutex;
  SiteReading reading;
  std::uint64_t offers = 0;  // the thread's
  std::uint64_t grants = 0;
  std::thread thread;
};

// One peer's stream.
class SchedulerServer::Body::Peer final
    : public grpc::ServerBidiReactor<site::FromPeer, site::ToPeer> {
 public:
  Peer(Body& body, std::string node) : body_(body), node_(std::move(node)) {}

  void Begin(PeerId id) {
    id_ = id;
    StartSendInitialMetadata();
    body_.Push(Connected{id});
    StartRead(&read_);
  }
  void Send(const ToPeer& message) {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    const bool beat = !message.has_workers && message.grants.empty() && message.refusals.empty() &&
                      message.refused.empty();
    if (beat && !writes_.waiting().empty()) return;  // what waits says as much
    if (writes_.waiting().size() >= kMostWaiting) {  // a peer that does not read
      ended_ = true;
      return Finish({grpc::StatusCode::RESOURCE_EXHAUSTED, "the peer does not read"});
    }
    Encode(message, writes_.waiting().emplace_back());
    WriteNext();
  }
  void End(const grpc::Status& status) {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(ended_, true)) return;
    }
    Finish(status);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(grpc::Status::OK);
    auto message = Decode(read_, Now());
    if (!message) {
      return End({grpc::StatusCode::INVALID_ARGUMENT, message.error().message});
    }
    for (const WorkerIntroduction& worker : message->join) {
      if (!body_.options.tls.on() || NodeOfWorker(worker.name) == node_) continue;
      return End({grpc::StatusCode::PERMISSION_DENIED,
                  "worker '" + worker.name + "' is not of node '" + node_ +
                      "', whose certificate it shows: its name is the node's, or NODE/..."});
    }
    body_.Push(Said{id_, *std::move(message)});
    read_.Clear();
    StartRead(&read_);
  }
  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    writes_.Written();
    if (ok && !ended_) WriteNext();
  }
  void OnCancel() override { End(grpc::Status::CANCELLED); }
  void OnDone() override { body_.Remove(id_); }

 private:
  void WriteNext() {
    if (const site::ToPeer* next = writes_.Next()) StartWrite(next);
  }

  static constexpr std::size_t kMostWaiting = 8192;  // messages

  Body& body_;
  const std::string node_;  // by its certificate; empty in the clear
  PeerId id_;
  site::FromPeer read_;
  std::mutex mutex_;
  WriteQueue<site::ToPeer> writes_;
  bool ended_ = false;
};

// A stream that ends before it begins; gRPC's reactors end themselves.
class Refused final : public grpc::ServerBidiReactor<site::FromPeer, site::ToPeer> {
 public:
  explicit Refused(const std::string& why) { Finish({grpc::StatusCode::FAILED_PRECONDITION, why}); }
  void OnDone() override { delete this; }
};

class SchedulerServer::Body::Service final : public site::Site::CallbackService {
 public:
  explicit Service(Body& body) : body_(body) {}
  grpc::ServerBidiReactor<site::FromPeer, site::ToPeer>* Attend(
      grpc::CallbackServerContext* context) override {
    const auto theirs = context->client_metadata().find(kSchedulersKey);
    if (theirs != context->client_metadata().end()) {
      const std::string_view list(theirs->second.data(), theirs->second.size());
      if (auto why = WhyNotOneSite(body_.options.schedulers, list)) return new Refused(*why);
    }
    auto peer = std::make_shared<Peer>(body_, PeerNode(*context->auth_context()));
    const PeerId id = body_.Add(peer);
    peer->Begin(id);
    return peer.get();
  }

 private:
  Body& body_;
};

SchedulerServer::Body::Body(Options with) : options(std::move(with)) {}
SchedulerServer::Body::~Body() = default;

PeerId SchedulerServer::Body::Add(const std::shared_ptr<Peer>& peer) {
  underway.Add(peer);
  const std::lock_guard lock(peers_mutex);
  const PeerId id{next_peer++};
  peers[id] = peer;
  return id;
}

void SchedulerServer::Body::Remove(PeerId id) {
  std::shared_ptr<Peer> peer;
  {
    const std::lock_guard lock(peers_mutex);
    const auto at = peers.find(id);
    peer = std::move(at->second);
    peers.erase(at);
  }
  Push(Closed{id});
  Peer* const gone = peer.get();
  peer.reset();
  underway.End(gone);
}

void SchedulerServer::Body::Send(PeerId id, ToPeer&& message) {
  grants += message.grants.size();
  std::shared_ptr<Peer> peer;
  {
    const std::lock_guard lock(peers_mutex);
    const auto at = peers.find(id);
    if (at == peers.end()) return;
    peer = at->second;
  }
  peer->Send(message);
}

void SchedulerServer::Body::Take(SiteScheduler& scheduler, Event& event) {
  const TimePoint now = Now();
  if (const auto* connected = std::get_if<Connected>(&event)) {
    scheduler.OnConnected(connected->peer, now);
  } else if (const auto* closed = std::get_if<Closed>(&event)) {
    scheduler.OnClosed(closed->peer, now);
  } else if (const auto* said = std::get_if<Said>(&event)) {
    offers += said->message.offers.size();
    scheduler.OnMessage(said->peer, said->message, now);
  } else if (const auto* other = std::get_if<OtherSaid>(&event)) {
    if (other->message.leads) other_terms[other->scheduler] = other->message.term;
    scheduler.OnScheduler(other->message, now);
  } else if (const auto* gone = std::get_if<OtherGone>(&event)) {
    scheduler.OnSchedulerGone(other_terms[gone->scheduler], now);
  }
}

void SchedulerServer::Body::Read(const SiteScheduler& scheduler) {
  SiteReading now{.leads = scheduler.leads(),
                  .term = scheduler.term(),
                  .peers = scheduler.peers(),
                  .offers = offers,
                  .grants = grants};
  if (const CentralScheduler* central = scheduler.central()) {
    now.waiting = central->waiting();
    now.running = central->running();
    now.workers = central->workers();
    for (const WorkerModel& model : central->models()) now.models.push_back(model.spec.name);
  }
  const std::lock_guard lock(reading_mutex);
  reading = std::move(now);
}

void SchedulerServer::Body::Run() {
  SiteScheduler::Options scheduler_options{
      .takeover = options.takeover,
      .central = options.central,
      .beat = options.beat,
      .policy = options.policy,
      .send = [this](PeerId peer, ToPeer&& message) { Send(peer, std::move(message)); },
      .say = options.say,
      .journal = options.journal};
  scheduler_options.takeover.rank = options.rank;
  scheduler_options.takeover.schedulers =
      static_cast<std::uint32_t>(std::max<std::size_t>(1, options.schedulers.size()));
  SiteScheduler scheduler(std::move(scheduler_options), Now());
  TimePoint read_at{};
  for (;;) {
    const TimePoint next = scheduler.Step(Now());
    if (const TimePoint now = Now(); now >= read_at) {
      Read(scheduler);
      read_at = now + Millis(100);
    }
    std::deque<Event> taken;
    {
      std::unique_lock lock(mutex);
      const TimePoint until = std::min(next, read_at);
      changed.wait_until(lock, steady_clock::time_point(until.time_since_epoch()),
                         [this] { return stop || !events.empty(); });
      if (stop) return;
      taken.swap(events);
    }
    for (Event& event : taken) Take(scheduler, event);
  }
}

std::unique_ptr<SchedulerLink> SchedulerServer::Body::LinkToOthers() {
  SchedulerLink::Options link;
  for (std::uint32_t i = 0; i < options.schedulers.size(); ++i) {
    if (i == options.rank) continue;
    link.schedulers.push_back(options.schedulers[i]);
    other_ranks.push_back(i);
  }
  if (link.schedulers.empty()) return nullptr;
  other_terms.resize(options.schedulers.size());
  link.of_site = options.schedulers;
  link.tls = options.tls;
  link.say = options.say;
  link.hear = [this](std::uint32_t place, ToPeer&& message) {
    Push(OtherSaid{other_ranks[place], std::move(message)});
  };
  link.gone = [this](std::uint32_t place) { Push(OtherGone{other_ranks[place]}); };
  link.now = Now;
  return std::make_unique<SchedulerLink>(std::move(link));
}

SchedulerServer::SchedulerServer(Options options)
    : body_(std::make_unique<Body>(std::move(options))) {}

SchedulerServer::~SchedulerServer() { Stop(); }

Expected<std::uint16_t> SchedulerServer::Start() {
  Body& body = *body_;
  body.service = std::make_unique<Body::Service>(body);
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingEveryMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingWithinMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 500);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.SetMaxReceiveMessageSize(64 << 20);
  int port = 0;
  const std::string address = HostPortText(body.options.address, body.options.port);
  builder.AddListeningPort(address, body.options.tls.Listening(), &port);
  builder.RegisterService(body.service.get());
  body.server = builder.BuildAndStart();
  if (body.server == nullptr || port == 0) {
    return Fail(ErrorCode::kUnavailable, "cannot listen on " + address +
                                             ": is another process there? Choose another --listen");
  }
  body.others = body.LinkToOthers();
  body.thread = std::thread([&body] { body.Run(); });
  if (body.others != nullptr) body.others->Start();
  return static_cast<std::uint16_t>(port);
}

void SchedulerServer::Stop() {
  Body& body = *body_;
  if (body.server == nullptr) return;
  if (body.others != nullptr) body.others->Stop();
  {
    const std::lock_guard lock(body.mutex);
    body.stop = true;
  }
  body.changed.notify_all();
  body.thread.join();
  for (const auto& peer : body.underway.all()) {
    peer->End({grpc::StatusCode::UNAVAILABLE, "the scheduler stops"});
  }
  body.server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  body.underway.Wait();
  body.server.reset();
}

SiteReading SchedulerServer::reading() const {
  const std::lock_guard lock(body_->reading_mutex);
  return body_->reading;
}

}  // namespace tactus
