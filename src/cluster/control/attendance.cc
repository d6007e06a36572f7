#include "cluster/control/attendance.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "cluster/control/codec.h"
#include "cluster/control/spare.h"
#include "cluster/tls/tls.h"
#include "control.grpc.pb.h"
#include "platform/repeated_task.h"

namespace tactus {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{200};
constexpr milliseconds kLongestPause{2000};
constexpr int kKeepaliveMs = 5000;
// Where there are several addresses: a host that is down keeps the next one waiting no longer. The
// attempt to connect goes on meanwhile, since the handshakes of a busy host take their time.
constexpr milliseconds kWaitForOne{1000};
constexpr milliseconds kLookAgain{100};

}  // namespace

struct Attendance::Body {
  Body(std::vector<std::string> where, const PeerTls& tls, AttendanceEvents told)
      : controllers(std::move(where)), events(std::move(told)) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kMostMessage);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // a ping for each order
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, static_cast<int>(kLongestPause.count()));
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
    for (const std::string& each : controllers) {
      channels.push_back(grpc::CreateCustomChannel(each, tls.Towards(kControllerNode), arguments));
      stubs.push_back(control::Control::NewStub(channels.back()));
    }
    thread = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  }

  void Run(const std::stop_token& stop) {
    milliseconds pause = kFirstPause;
    while (!stop.stop_requested()) {
      bool heard = false;
      std::string why;
      for (std::size_t at = 0; at < stubs.size() && !heard && !stop.stop_requested(); ++at) {
        if (stubs.size() == 1 || Decided(at, stop)) {
          heard = Attend(at, why, stop);
        } else {
          Add(why, at, "does not answer yet");
        }
      }
      events.lost(why);
      pause = heard ? kFirstPause : std::min(pause * 2, kLongestPause);
      SleepUnlessStopped(pause, stop);
    }
  }

  // Whether the attempt to connect there has come to an end, good or bad.
  bool Decided(std::size_t at, const std::stop_token& stop) {
    const auto end = std::chrono::steady_clock::now() + kWaitForOne;
    auto state = channels[at]->GetState(true);
    while (state == GRPC_CHANNEL_IDLE || state == GRPC_CHANNEL_CONNECTING) {
      if (stop.stop_requested() || std::chrono::steady_clock::now() >= end) return false;
      channels[at]->WaitForStateChange(state, std::chrono::system_clock::now() + kLookAgain);
      state = channels[at]->GetState(true);
    }
    return true;
  }

  void Add(std::string& why, std::size_t at, const std::string& said) const {
    why += (why.empty() ? "" : "; ") + (stubs.size() > 1 ? controllers[at] + ": " : "") + said;
  }

  // One connection; whether the controller said anything. Adds why it ended.
  bool Attend(std::size_t at, std::string& why, const std::stop_token& stop) {
    grpc::ClientContext context;
    const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    const auto stream = stubs[at]->Attend(&context);
    {
      const std::scoped_lock lock(mutex);
      message.reset();
      over = false;
    }
    events.connected();
    std::jthread writer([&] { Write(*stream, context); });
    bool heard = false;
    control::ToNode wire;
    while (stream->Read(&wire)) {
      heard = true;
      auto order = Decode(wire);
      if (order) events.order(*std::move(order));
    }
    {
      const std::scoped_lock lock(mutex);
      over = true;
      come.notify_all();
    }
    writer.join();
    const grpc::Status status = stream->Finish();
    std::string said = status.ok() ? "the controller ended the connection" : status.error_message();
    const bool away = status.error_code() == grpc::StatusCode::UNAVAILABLE;
    if (away && !heard && !said.starts_with(kNotTheLeader))
      said += "; is one up there, with the same --tls?";
    if (heard) why.clear();  // what the others said before is past
    Add(why, at, said);
    return heard;
  }

  void Write(grpc::ClientReaderWriter<control::FromNode, control::ToNode>& stream,
             grpc::ClientContext& context) {
    for (;;) {
      control::FromNode wire;
      {
        std::unique_lock lock(mutex);
        come.wait(lock, [this] { return over || message; });
        if (over) return;
        Encode(*message, wire);
        message.reset();
      }
      if (!stream.Write(wire)) return context.TryCancel();
    }
  }

  const std::vector<std::string> controllers;
  const AttendanceEvents events;
  std::vector<std::shared_ptr<grpc::Channel>> channels;  // one for each
  std::vector<std::unique_ptr<control::Control::Stub>> stubs;
  std::mutex mutex;
  std::condition_variable come;
  std::optional<FromNode> message;  // under the mutex; the latest
  bool over = true;                 // under the mutex
  std::jthread thread;              // last: it uses the others
};

Attendance::Attendance(std::vector<std::string> controllers, PeerTls tls, AttendanceEvents events)
    : body_(std::make_unique<Body>(std::move(controllers), tls, std::move(events))) {}

Attendance::~Attendance() = default;

void Attendance::Send(FromNode message) {
  const std::scoped_lock lock(body_->mutex);
  body_->message = std::move(message);
  body_->come.notify_all();
}

}  // namespace tactus
