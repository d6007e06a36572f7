// grpc.health.v1: whether the server is ready, for those who ask and those who watch.
#pragma once

#include <string>

#include "server/grpc/call.h"
#include "server/grpc/call_gate.h"
#include "server/grpc/state_board.h"

namespace tactus {

class Health {
 public:
  Health();

  // Tells the health of the server and of the one service that it has. Thread-safe.
  void Tell(bool ready);
  void AddTo(RpcMethods& methods, const CallGate& gate) const;

 private:
  StateBoard board_;
};

}  // namespace tactus
