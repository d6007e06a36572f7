#include "cluster/control/controller.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "cluster/control/attend_reactor.h"
#include "cluster/control/blob_reactor.h"
#include "cluster/control/codec.h"
#include "cluster/control/enrolment.h"
#include "cluster/control/loop.h"
#include "cluster/control/spare.h"
#include "cluster/control/state_file.h"
#include "cluster/tls/tls.h"
#include "control.grpc.pb.h"
#include "platform/process.h"
#include "platform/wall_clock.h"

namespace tactus {
namespace {

// Reports that come within it are looked at together.
constexpr Duration kGather = Millis(5);
constexpr Duration kKeepAgain = Millis(200);
constexpr int kPingsEvery = 2000;
constexpr auto kDescribesWithin = std::chrono::seconds(5);

std::string IdText(PlanId id) {
  return "plan " + std::to_string(id.epoch) + " of term " + std::to_string(id.term);
}

EnrolmentOptions EnrolmentOf(const ControllerOptions& options, const FleetInput& fleet) {
  EnrolmentOptions enrolment{.authority = options.authority, .nodes = {}, .use = options.use_token};
  for (const auto& device : fleet.devices) enrolment.nodes.insert(device.name);
  return enrolment;
}

// Tells people what happens, and whoever keeps history.
class ToldHistory final : public FleetHistory {
 public:
  ToldHistory(Controller::Log log, FleetHistory* kept) : log_(std::move(log)), kept_(kept) {}

  void OnStanding(TimePoint now, const std::string& node, Standing standing) override {
    log_("node " + node + " is " + Name(standing));
    if (kept_ != nullptr) kept_->OnStanding(now, node, standing);
  }
  void OnLead(TimePoint now, std::uint64_t term) override {
    log_("leads, term " + std::to_string(term));
    if (kept_ != nullptr) kept_->OnLead(now, term);
  }
  void OnTakenUp(TimePoint now, PlanId id) override {
    log_(IdText(id) + " is served, and holds");
    if (kept_ != nullptr) kept_->OnTakenUp(now, id);
  }
  void OnReport(TimePoint now, const FromNode& message) override {
    if (kept_ != nullptr) kept_->OnReport(now, message);
  }
  void OnPlan(TimePoint now, PlanId id, const FleetInput& input, const FleetPlan& plan) override {
    log_(IdText(id) + ": " + std::to_string(plan.instances.size()) + " instances on " +
         std::to_string(input.devices.size()) + " nodes");
    if (kept_ != nullptr) kept_->OnPlan(now, id, input, plan);
  }
  void OnScaled(TimePoint now, PlanId id, const std::string& what) override {
    log_(IdText(id) + " is the AutoScaler's: " + what);
    if (kept_ != nullptr) kept_->OnScaled(now, id, what);
  }
  void OnRollout(TimePoint now, PlanId id, bool adopted, const std::string& why) override {
    log_(IdText(id) + (adopted ? " serves everywhere" : " was abandoned: " + why));
    if (kept_ != nullptr) kept_->OnRollout(now, id, adopted, why);
  }

 private:
  const Controller::Log log_;
  FleetHistory* const kept_;
};

}  // namespace

struct Controller::Body final : control::Control::CallbackService {
  Body(ControllerOptions given, FolderLock held, FleetInput fleet, FleetLeader::Planning planning,
       LeaderKept kept, Log told, FleetHistory* keeper)
      : options(std::move(given)),
        lock(std::move(held)),
        log(told),
        enrolment(EnrolmentOf(options, fleet), told),
        history(std::move(told), keeper),
        leader(std::move(fleet), std::move(planning), options.leader, kept, clock.Now(), &history) {
  }

  grpc::ServerBidiReactor<control::FromNode, control::ToNode>* Attend(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const control::DescribeRequest* request,
                                     control::Cluster* response) override;
  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context,
                                 const control::JoinRequest* request,
                                 control::JoinReply* response) override;
  grpc::ServerWriteReactor<control::BlobPiece>* Fetch(grpc::CallbackServerContext* context,
                                                      const control::BlobRequest* request) override;
  Status Listen();
  void Heard(const FromNode& message, const std::shared_ptr<AttendReactor::Line>& line);
  void Run();
  void Work();
  void End();

  const ControllerOptions options;
  const FolderLock lock;
  const Log log;
  const WallClock clock;
  Enrolment enrolment;
  ToldHistory history;
  Loop loop{kGather};
  FleetLeader leader;  // of the loop, as what follows
  using Peer = std::tuple<std::string, std::uint64_t, std::uint64_t>;  // name, home, start
  std::map<Peer, std::weak_ptr<AttendReactor::Line>> lines;
  TimePoint due = kStart;
  bool ended = false;  // it may not lead any more, and does nothing

  mutable std::mutex mutex;
  std::string superseded;  // under the mutex
  std::atomic<int> fetches{0};
  int port = 0;
  std::unique_ptr<grpc::Server> server;
  std::jthread thread;
};

grpc::ServerBidiReactor<control::FromNode, control::ToNode>* Controller::Body::Attend(
    grpc::CallbackServerContext* context) {
  std::string node;
  if (options.tls.on()) node = PeerNode(*context->auth_context());
  // A name that no node has: whatever it says is refused.
  if (options.tls.on() && node.empty()) node = "?";
  return new AttendReactor(
      node, [this](FromNode message, const std::shared_ptr<AttendReactor::Line>& line) {
        loop.Post([this, message = std::move(message), line] { Heard(message, line); });
      });
}

grpc::ServerUnaryReactor* Controller::Body::Describe(grpc::CallbackServerContext* context,
                                                     const control::DescribeRequest*,
                                                     control::Cluster* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  if (options.tls.on() && PeerNode(*context->auth_context()).empty()) {
    reactor->Finish({grpc::StatusCode::UNAUTHENTICATED,
                     "this cluster's authority signed no certificate of yours: --tls FOLDER"});
    return reactor;
  }
  loop.Post([this, reactor, response] {
    Encode(leader.View(clock.Now()), *response);
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

grpc::ServerUnaryReactor* Controller::Body::Join(grpc::CallbackServerContext* context,
                                                 const control::JoinRequest* request,
                                                 control::JoinReply* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  JoinCall call{request->token(), request->request_pem(),
                options.tls.on() ? PeerNode(*context->auth_context()) : ""};
  enrolment.Ask(std::move(call), [reactor, response](const Expected<Joined>& joined) {
    if (!joined) {
      const bool later = joined.error().code == ErrorCode::kUnavailable;
      return reactor->Finish(
          {later ? grpc::StatusCode::UNAVAILABLE : grpc::StatusCode::PERMISSION_DENIED,
           joined.error().message});
    }
    response->set_certificate_pem(joined->certificate);
    response->set_authority_pem(joined->authority);
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

grpc::ServerWriteReactor<control::BlobPiece>* Controller::Body::Fetch(
    grpc::CallbackServerContext* context, const control::BlobRequest* request) {
  if (options.tls.on() && PeerNode(*context->auth_context()).empty()) {
    return new BlobReactor({grpc::StatusCode::UNAUTHENTICATED,
                            "models are for nodes with a certificate of this cluster's authority"},
                           fetches);
  }
  return new BlobReactor(options.models, *request, fetches);
}

Status Controller::Body::Listen() {
  grpc::ServerBuilder builder;
  builder.RegisterService(this);
  builder.SetMaxReceiveMessageSize(kMostMessage);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kPingsEvery);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // a ping for each report
  builder.AddListeningPort(options.listen, options.tls.ListeningToStrangers(), &port);
  server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return Fail(ErrorCode::kUnavailable,
                "cannot listen at " + options.listen +
                    "; is another process there, and is it an address of this machine? Choose "
                    "another --listen");
  }
  return {};
}

void Controller::Body::Heard(const FromNode& message,
                             const std::shared_ptr<AttendReactor::Line>& line) {
  const auto [known, fresh] =
      lines.insert_or_assign({message.node, message.who.home, message.who.count}, line);
  if (fresh) std::erase_if(lines, [](const auto& each) { return each.second.expired(); });
  leader.Receive(message, clock.Now());
}

void Controller::Body::Work() {
  if (clock.Now() < due || ended) return;
  leader.Step(clock.Now());
  LeaderActions actions = leader.Take();
  // Last: a plan may have taken its time.
  if (options.may_lead && !options.may_lead()) {
    ended = true;
    due = kNever;
    const std::scoped_lock guard(mutex);
    superseded = "this controller is not the elected leader any more";
    return;
  }
  TimePoint next = leader.Next();
  if (actions.keep) {
    const Status kept = Write(*actions.keep, options.state);
    if (kept) leader.WasKept();
    if (!kept) {
      log(kept.error().message);
      actions.send.clear();  // it is sent again
      next = std::min(next, clock.Now() + kKeepAgain);
    }
  }
  for (const ToNode& order : actions.send) {
    const auto line = lines.find({order.node, order.to.home, order.to.count});
    if (line == lines.end()) continue;
    if (const auto open = line->second.lock()) open->Send(order);
  }
  if (leader.superseded()) {
    const std::scoped_lock guard(mutex);
    superseded = leader.superseded_why();
  }
  due = std::max(next, clock.Now() + kGather);
}

void Controller::Body::Run() {
  while (loop.RunUntil(clock.RealAt(due))) {
    due = kStart;  // whatever came may have changed all
    Work();
  }
}

void Controller::Body::End() {
  if (server != nullptr) {
    server->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
    server->Wait();
  }
  loop.Close();
  if (thread.joinable()) thread.join();
}

Controller::Controller(std::unique_ptr<Body> body) : body_(std::move(body)) {}
Controller::~Controller() { body_->End(); }

std::uint16_t Controller::port() const { return static_cast<std::uint16_t>(body_->port); }

std::string Controller::superseded() const {
  const std::scoped_lock guard(body_->mutex);
  return body_->superseded;
}

Expected<std::unique_ptr<Controller>> Controller::Start(ControllerOptions options, FleetInput fleet,
                                                        FleetLeader::Planning planning, Log log,
                                                        FleetHistory* history) {
  if (Status reach = CheckReach(options.listen, options.tls); !reach) {
    return std::unexpected(std::move(reach.error()));
  }
  auto lock = FolderLock::Take(options.state);
  if (!lock) return std::unexpected(std::move(lock.error()));
  auto kept = ReadLeader(options.state);
  if (!kept) return std::unexpected(std::move(kept.error()));
  kept->term = std::max(kept->term, options.least.term);
  kept->epoch = std::max(kept->epoch, options.least.epoch);
  auto body = std::make_unique<Body>(std::move(options), *std::move(lock), std::move(fleet),
                                     std::move(planning), *kept, std::move(log), history);
  if (Status listening = body->Listen(); !listening) {
    return std::unexpected(std::move(listening.error()));
  }
  body->thread = std::jthread([at = body.get()] { at->Run(); });
  return std::unique_ptr<Controller>(new Controller(std::move(body)));
}

Expected<LeaderView> DescribeCluster(const std::string& controller, const PeerTls& tls) {
  if (Status reach = CheckReach(controller, tls); !reach) {
    return std::unexpected(std::move(reach.error()));
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMostMessage * 16);
  const auto stub = control::Control::NewStub(
      grpc::CreateCustomChannel(controller, tls.Towards(kControllerNode), arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kDescribesWithin);
  control::Cluster cluster;
  const grpc::Status status = stub->Describe(&context, {}, &cluster);
  if (status.error_message().starts_with(kNotTheLeader)) {
    return Fail(ErrorCode::kCancelled, controller + " is " + status.error_message());
  }
  if (!status.ok()) {
    return Fail(
        ErrorCode::kUnavailable,
        "no controller answers at " + controller + ": " + status.error_message() +
            "; is one up that listens there (--controller HOST:PORT), with the same --tls?");
  }
  return Decode(cluster);
}

}  // namespace tactus
