// Keeps a node's certificate from expiring: asks the controllers for another when a third of its
// time is left. Whoever watches the files takes it (PeerTls does). Says when it could not, before
// nobody lets the node in any more.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/expected.h"
#include "cluster/tls/peer_tls.h"
#include "platform/repeated_task.h"

namespace tactus {

enum class Renewal { kNotDue, kDue, kExpired };
Renewal RenewalOf(const Validity& validity, std::chrono::sys_seconds now);

class CertificateRenewal {
 public:
  using Log = std::function<void(const std::string&)>;

  // Looks now, and then every `look_every`.
  CertificateRenewal(std::vector<std::string> controllers, std::filesystem::path folder, Log log,
                     std::chrono::milliseconds look_every = std::chrono::minutes(1));

 private:
  void Look();
  // Once for each thing that is said.
  void Say(const std::string& what);

  const std::vector<std::string> controllers_;
  const std::filesystem::path folder_;
  const Log log_;
  std::string said_;
  RepeatedTask thread_;  // last: it uses the others
};

}  // namespace tactus
