// A front end's, a worker's or a scheduler's connections to the schedulers of its site: one stream
// to each, begun anew where it ends. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/tls/peer_tls.h"
#include "site/messages.h"

namespace tactus {

class SchedulerLink {
 public:
  struct Options {
    std::vector<std::string> schedulers;  // HOST:PORT, in the order of their ranks
    std::vector<std::string> of_site;     // all, this process too where it is one
    PeerTls tls;
    // What a scheduler, by its place in the list, says; on threads of the link, one call at a time
    // for each scheduler. May Send.
    std::function<void(std::uint32_t, ToPeer&&)> hear;
    // The stream to a scheduler ended; another attempt follows after `again`.
    std::function<void(std::uint32_t)> gone;
    std::function<void(const std::string&)> say;  // one line for people
    // Now, by the clock that the deadlines of offers are of.
    std::function<TimePoint()> now;
    Duration again = Millis(50);
  };

  explicit SchedulerLink(Options options);
  ~SchedulerLink();  // Stop

  void Start();
  void Stop();

  // Sends it if there is a stream to that scheduler, else drops it: whoever follows a scheduler
  // says everything anew when it leads. Never blocks.
  void Send(std::uint32_t scheduler, const FromPeer& message);

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace tactus
