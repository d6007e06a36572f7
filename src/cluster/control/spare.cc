#include "cluster/control/spare.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "cluster/control/codec.h"
#include "cluster/tls/tls.h"
#include "control.grpc.pb.h"

namespace tactus {
namespace {

constexpr auto kSpareEndsWithin = std::chrono::milliseconds(200);

// Hears one report of an agent, which says what term it obeys, and ends.
class RefusingReactor final : public grpc::ServerBidiReactor<control::FromNode, control::ToNode> {
 public:
  // `node`: whose word counts; empty: anybody's.
  RefusingReactor(grpc::Status status, std::string node, std::atomic<std::uint64_t>* highest)
      : status_(std::move(status)), node_(std::move(node)), highest_(highest) {
    StartRead(&read_);
  }

 private:
  void OnReadDone(bool ok) override {
    const auto message = ok ? Decode(read_) : Expected<FromNode>(InvalidArgument(""));
    if (message && highest_ != nullptr && (node_.empty() || message->node == node_)) {
      std::uint64_t seen = highest_->load();
      while (seen < ReportOf(*message).term &&
             !highest_->compare_exchange_weak(seen, ReportOf(*message).term)) {
      }
    }
    Finish(status_);
  }
  void OnDone() override { delete this; }

  const grpc::Status status_;
  const std::string node_;
  std::atomic<std::uint64_t>* const highest_;  // null: whoever speaks is nobody's node
  control::FromNode read_;
};

}  // namespace

struct SpareController::Body final : control::Control::CallbackService {
  Body(const PeerTls& given, std::function<std::string()> told)
      : tls(given), who_leads(std::move(told)) {}

  grpc::Status Refusal() const {
    const std::string who = who_leads();
    return {grpc::StatusCode::UNAVAILABLE,
            kNotTheLeader + (who.empty() ? "nobody is known to lead" : who + " leads")};
  }
  grpc::ServerUnaryReactor* Refuse(grpc::CallbackServerContext* context) const {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(Refusal());
    return reactor;
  }
  grpc::ServerBidiReactor<control::FromNode, control::ToNode>* Attend(
      grpc::CallbackServerContext* context) override {
    const std::string node = tls.on() ? PeerNode(*context->auth_context()) : "";
    const bool known = !tls.on() || !node.empty();
    return new RefusingReactor(Refusal(), node, known ? &highest : nullptr);
  }
  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const control::DescribeRequest*, control::Cluster*) override {
    return Refuse(context);
  }
  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context, const control::JoinRequest*,
                                 control::JoinReply*) override {
    return Refuse(context);
  }

  const PeerTls tls;
  const std::function<std::string()> who_leads;
  std::atomic<std::uint64_t> highest{0};
  int port = 0;
  std::unique_ptr<grpc::Server> server;
};

SpareController::SpareController(std::unique_ptr<Body> body) : body_(std::move(body)) {}

SpareController::~SpareController() {
  body_->server->Shutdown(std::chrono::system_clock::now() + kSpareEndsWithin);
  body_->server->Wait();
}

std::uint16_t SpareController::port() const { return static_cast<std::uint16_t>(body_->port); }
std::uint64_t SpareController::term_heard() const { return body_->highest; }

Expected<std::unique_ptr<SpareController>> SpareController::Start(
    const std::string& listen, const PeerTls& tls, std::function<std::string()> who_leads) {
  if (Status reach = CheckReach(listen, tls); !reach) {
    return std::unexpected(std::move(reach.error()));
  }
  auto body = std::make_unique<Body>(tls, std::move(who_leads));
  grpc::ServerBuilder builder;
  builder.RegisterService(body.get());
  builder.SetMaxReceiveMessageSize(kMostMessage);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(listen, tls.ListeningToStrangers(), &body->port);
  body->server = builder.BuildAndStart();
  if (body->server == nullptr || body->port == 0) {
    return Fail(ErrorCode::kUnavailable,
                "cannot listen at " + listen +
                    "; is another process there, and is it an address of this machine? Choose "
                    "another --listen");
  }
  return std::unique_ptr<SpareController>(new SpareController(std::move(body)));
}

}  // namespace tactus
