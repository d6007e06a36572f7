// An agent's connection to its controller: made again whenever it ends, to the next address where
// there are several. Reports are whole states, so only the latest waits to be sent.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/tls/peer_tls.h"
#include "fleet/messages.h"

namespace tactus {

struct AttendanceEvents {
  // Each on a thread of the connection.
  std::function<void()> connected;
  std::function<void(ToNode)> order;
  std::function<void(std::string why)> lost;  // of each attempt at all addresses, too
};

class Attendance {
 public:
  // HOST:PORT of each that may lead, at least one.
  Attendance(std::vector<std::string> controllers, PeerTls tls, AttendanceEvents events);
  ~Attendance();  // ends the connection

  void Send(FromNode message);

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace tactus
