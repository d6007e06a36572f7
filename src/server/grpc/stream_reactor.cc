#include "server/grpc/stream_reactor.h"

#include <chrono>
#include <new>
#include <utility>
#include <vector>

#include "grpc_service.pb.h"
#include "server/grpc/infer_reactor.h"
#include "server/grpc/on_arena.h"
#include "server/grpc/request_message.h"
#include "server/grpc/response_message.h"
#include "server/grpc/wire.h"
#include "server/kserve/error_mapping.h"

namespace tactus {
namespace {

// perf_analyzer and decoupled clients ask for a mark on the last response of a call.
bool WantsFinalFlag(const inference::ModelInferRequest& message) {
  const auto found = message.parameters().find("triton_enable_empty_final_response");
  return found != message.parameters().end() && found->second.bool_param();
}

}  // namespace

StreamReactor::StreamReactor(InferenceService& service, const CallGate& gate, bool strict_triton,
                             grpc::CallbackServerContext& context)
    : service_(service), gate_(gate), strict_triton_(strict_triton), context_(context) {
  reading_ = true;
  StartRead(&incoming_);
}

void StreamReactor::OnReadDone(bool ok) {
  if (ok) {
    grpc::ByteBuffer message;
    message.Swap(&incoming_);
    try {
      Begin(std::move(message));
    } catch (const std::bad_alloc&) {
      Refuse({ErrorCode::kResourceExhausted, "no memory for this call: try again later"}, "");
    }
  }
  Step step;
  {
    std::scoped_lock lock(mutex_);
    reading_ = false;
    no_more_ = no_more_ || !ok;
    step = Take();
  }
  Make(step);
}

void StreamReactor::OnWriteDone(bool ok) {
  Step step;
  {
    std::scoped_lock lock(mutex_);
    writing_ = false;
    outgoing_.pop_front();
    no_more_ = no_more_ || !ok;
    step = Take();
  }
  Make(step);
}

void StreamReactor::OnCancel() {
  std::vector<CallId> running;
  Step step;
  {
    std::scoped_lock lock(mutex_);
    cancelled_ = true;
    no_more_ = true;
    for (const auto& [serial, id] : calls_) {
      if (id != kNotYet) running.push_back(id);
    }
    step = Take();
  }
  for (CallId id : running) service_.Cancel(id);
  Make(step);
}

void StreamReactor::Refuse(const Error& error, const std::string& id) {
  std::scoped_lock lock(mutex_);
  outgoing_.push_back(ToStreamError(ToWire(error, strict_triton_).text, id));
}

void StreamReactor::Begin(grpc::ByteBuffer bytes) {
  const auto received = std::chrono::steady_clock::now();
  if (Status unpacked = Unpack(bytes, gate_.max_message); !unpacked) {
    return Refuse(unpacked.error(), "");
  }
  const std::size_t size = bytes.Length();
  auto message = ParseInferRequest(bytes);
  if (!message) {
    std::scoped_lock lock(mutex_);
    no_more_ = true;
    status_ = ToGrpcStatus(message.error(), strict_triton_);
    return;
  }
  const std::string id = (*message)->id();
  if (Status open = gate_.Open(); !open) return Refuse(open.error(), id);
  const bool final_flag = WantsFinalFlag(**message);
  auto call =
      CallFrom(service_, std::move(*message), received, gate_.takes_granted, gate_.takes_entered);
  Status fine = call ? ReadTimeMetadata(context_, call->limit) : std::unexpected(call.error());
  if (!fine) return Refuse(fine.error(), id);
  auto place = gate_.Enter(context_, size);
  if (!place) return Refuse(place.error(), id);
  const bool of_stream = TightenByGrpc(context_, *call);
  if (call->priority == 0) call->priority = ObjectiveOf(context_, gate_);
  Serial serial;
  {
    std::scoped_lock lock(mutex_);
    serial = next_serial_++;
    calls_.emplace(serial, kNotYet);
    if (counted_ == 0) gate_.now->calls.fetch_add(counted_ = 1);
  }
  // The call's place is given back with what answers it.
  call->reply = [this, serial, id, size, final_flag, of_stream, classes = std::move(call->classes),
                 place = *std::move(place)](InferReply&& reply) {
    if (strict_triton_ && of_stream && IsExpired(reply)) return Expire(serial);
    if (IsRefusal(reply.status)) {
      return gate_.Refuse(context_, size, [this, serial, id, reply, place] {
        Answer(serial, id, false, InferReply(reply));
      });
    }
    Answer(serial, id, final_flag, Classified(classes, std::move(reply)));
  };
  const CallId started = service_.Infer(std::move(*call));
  bool cancel = false;
  {
    std::scoped_lock lock(mutex_);
    const auto found = calls_.find(serial);  // gone if it was answered already
    if (found != calls_.end()) {
      found->second = started;
      cancel = cancelled_;  // OnCancel came before the id was known
    }
  }
  if (cancel) service_.Cancel(started);
}

void StreamReactor::Answer(Serial serial, const std::string& id, bool final_flag,
                           InferReply&& reply) {
  grpc::ByteBuffer message;
  if (reply.status) {
    OnArena<inference::ModelInferResponse> head;
    FillHead(reply, id, *head);
    if (final_flag) (*head->mutable_parameters())["triton_final_response"].set_bool_param(true);
    message = ToStreamMessage(EncodeResponse(*head, reply.outputs, reply.storage));
  } else {
    message = ToStreamError(ToWire(reply.status.error(), strict_triton_).text, id);
  }
  Step step;
  {
    std::scoped_lock lock(mutex_);
    outgoing_.push_back(std::move(message));
    calls_.erase(serial);
    step = Take();
  }
  Make(step);
}

void StreamReactor::Expire(Serial serial) {
  Step step;
  {
    std::scoped_lock lock(mutex_);
    calls_.erase(serial);
    status_ = DeadlinePassed();
    step = Take();
  }
  Make(step);
}

StreamReactor::Step StreamReactor::Take() {
  Step step;
  if (finished_) return step;
  if (cancelled_ && !writing_) outgoing_.clear();  // nobody would read it
  const std::size_t counts = calls_.empty() && outgoing_.empty() ? 0 : 1;
  gate_.now->calls.fetch_add(counts - std::exchange(counted_, counts));  // modulo 2^64
  if (!writing_ && !outgoing_.empty()) {
    writing_ = true;
    step.write = &outgoing_.front();
  }
  if (!no_more_ && !reading_ && calls_.size() + outgoing_.size() < kMaxCalls) {
    reading_ = true;
    step.read = true;
  }
  if (no_more_ && !reading_ && !writing_ && calls_.empty()) {
    finished_ = true;
    step.finish = true;
    step.status = status_;
  }
  return step;
}

void StreamReactor::Make(const Step& step) {
  // At most one of these may be the last touch of this object: a step that is under way keeps it.
  if (step.read) StartRead(&incoming_);
  if (step.write != nullptr) StartWrite(step.write);
  if (step.finish) Finish(step.status);
}

}  // namespace tactus
