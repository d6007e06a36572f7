// One agent's connection at the controller, as gRPC's callbacks drive it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <grpcpp/support/server_callback.h>

#include "control.pb.h"
#include "fleet/messages.h"

namespace tactus {

// What outlives the connection for those who send to it.
class AttendReactor final : public grpc::ServerBidiReactor<control::FromNode, control::ToNode> {
 public:
  // Whoever holds it may send; after the connection's end that does nothing.
  class Line {
   public:
    void Send(const ToNode& order);

   private:
    friend class AttendReactor;
    std::mutex mutex_;
    AttendReactor* reactor_ = nullptr;  // under the mutex; null: ended
  };
  using Told = std::function<void(FromNode, const std::shared_ptr<Line>&)>;

  // `node`: the only name that it may use; empty: any.
  AttendReactor(std::string node, Told told);

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { End(grpc::Status::CANCELLED); }
  void OnDone() override;
  void End(const grpc::Status& status);
  void Next();  // under the line's mutex

  const std::string node_;
  const Told told_;
  const std::shared_ptr<Line> line_ = std::make_shared<Line>();
  control::FromNode read_;
  std::deque<control::ToNode> waiting_;  // under the line's mutex; the first is being written
  bool writing_ = false;                 // under the line's mutex
  bool ended_ = false;                   // under the line's mutex
};

}  // namespace tactus
