#include "cluster/control/attend_reactor.h"

#include <utility>

#include "cluster/control/codec.h"

namespace tactus {
namespace {

// A node that reads so slowly gets what is sent again later.
constexpr std::size_t kMostWaiting = 64;

}  // namespace

AttendReactor::AttendReactor(std::string node, Told told)
    : node_(std::move(node)), told_(std::move(told)) {
  line_->reactor_ = this;
  StartRead(&read_);
}

void AttendReactor::Line::Send(const ToNode& order) {
  const std::scoped_lock lock(mutex_);
  if (reactor_ == nullptr || reactor_->ended_) return;
  if (reactor_->waiting_.size() >= kMostWaiting) return;
  Encode(order, reactor_->waiting_.emplace_back());
  reactor_->Next();
}

void AttendReactor::Next() {
  if (writing_ || ended_ || waiting_.empty()) return;
  writing_ = true;
  StartWrite(&waiting_.front());
}

void AttendReactor::OnReadDone(bool ok) {
  if (!ok) return End(grpc::Status::OK);
  auto message = Decode(read_);
  if (!message) return End({grpc::StatusCode::INVALID_ARGUMENT, message.error().message});
  if (!node_.empty() && message->node != node_) {
    return End({grpc::StatusCode::PERMISSION_DENIED, "the certificate is of node '" + node_ +
                                                         "', and the agent says that it is '" +
                                                         message->node +
                                                         "'; give it the --tls folder of its "
                                                         "own node"});
  }
  told_(*std::move(message), line_);
  read_.Clear();
  StartRead(&read_);
}

void AttendReactor::OnWriteDone(bool ok) {
  if (!ok) return End(grpc::Status::CANCELLED);
  const std::scoped_lock lock(line_->mutex_);
  waiting_.pop_front();
  writing_ = false;
  Next();
}

void AttendReactor::End(const grpc::Status& status) {
  {
    const std::scoped_lock lock(line_->mutex_);
    if (ended_) return;
    ended_ = true;
  }
  Finish(status);
}

void AttendReactor::OnDone() {
  {
    const std::shared_ptr<Line> line = line_;
    const std::scoped_lock lock(line->mutex_);
    line->reactor_ = nullptr;
  }
  delete this;
}

}  // namespace tactus
