// The controller of a fleet: it attends its agents over gRPC, plans for the nodes that are here
// with the rates that they measure, and rolls the plans out. It drives FleetLeader in real time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/expected.h"
#include "cluster/models/catalogue.h"
#include "cluster/tls/peer_tls.h"
#include "cluster/tls/token.h"
#include "fleet/history.h"
#include "fleet/leader.h"

namespace tactus {

struct ControllerOptions {
  std::string listen = "127.0.0.1:7400";  // port 0: any free one
  std::filesystem::path state;            // controller.state
  PeerTls tls;
  std::filesystem::path authority;  // whose tokens admit nodes; empty: nobody may join
  // EnrolmentOptions::use. Null: no token admits anybody.
  std::function<Status(const Token&, const std::string& key)> use_token;
  LeaderOptions leader;
  // What nodes may fetch: the models of `leader.digests`, and what they need. Null: nothing.
  std::shared_ptr<const Catalogue> models;
  // What is known from elsewhere: it counts on from there, if the folder does not know more.
  LeaderKept least;
  // Asked before anything is sent: false ends it, as another may lead. Null: nobody elects leaders.
  std::function<bool()> may_lead;
};

class Controller {
 public:
  using Log = std::function<void(const std::string&)>;

  // `planning` runs on the controller's thread; `history` may be null, else it outlives it.
  // kAlreadyExists where another process holds the folder, kUnavailable where the port is taken.
  static Expected<std::unique_ptr<Controller>> Start(ControllerOptions options, FleetInput fleet,
                                                     FleetLeader::Planning planning, Log log,
                                                     FleetHistory* history = nullptr);
  ~Controller();

  std::uint16_t port() const;
  // Once a leader of a later term is there, or it may not lead: why it has ended. Empty: it leads.
  std::string superseded() const;

 private:
  struct Body;
  explicit Controller(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

// What the controller there says of its cluster. kCancelled: it does not lead, and says who does;
// kUnavailable: none answers.
Expected<LeaderView> DescribeCluster(const std::string& controller, const PeerTls& tls);

}  // namespace tactus
