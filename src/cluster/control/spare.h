// A controller that waits for its turn: it listens where it will lead, and tells whoever comes who
// leads, so that agents try the next address.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/expected.h"
#include "cluster/tls/peer_tls.h"

namespace tactus {

// How its answers begin.
inline constexpr char kNotTheLeader[] = "not the leader; ";

class SpareController {
 public:
  // `who_leads`, from any thread: empty if nobody knows. kUnavailable where the port is taken.
  static Expected<std::unique_ptr<SpareController>> Start(const std::string& listen,
                                                          const PeerTls& tls,
                                                          std::function<std::string()> who_leads);
  ~SpareController();

  std::uint16_t port() const;
  // The highest term of a leader that a node has heard of, by those who came here.
  std::uint64_t term_heard() const;

 private:
  struct Body;
  explicit SpareController(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace tactus
