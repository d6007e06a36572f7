// Who gets a certificate of the cluster's authority: a node that shows a token for the first time,
// and one whose certificate is still good. On a thread of its own: the store that knows which
// tokens were used may be slow.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include "base/expected.h"
#include "cluster/tls/token.h"
#include "platform/task_queue.h"

namespace tactus {

struct EnrolmentOptions {
  std::filesystem::path authority;  // with its key; empty: nobody may join
  std::set<std::string> nodes;      // of the fleet: their certificates are renewed
  // Writes down that the token was used for the public key of that sum, which nobody undoes.
  // kAlreadyExists: for another key before. Other errors: nobody knows. Null: nobody can.
  std::function<Status(const Token&, const std::string& key)> use;
};

struct JoinCall {
  std::string token;    // empty: to renew
  std::string request;  // PEM
  std::string peer;     // the node that the caller's certificate names; empty: it has none
};
struct Joined {
  std::string certificate;  // PEM
  std::string authority;    // PEM
};

// Whoever asked before it ends has its answer: none is dropped.
class Enrolment {
 public:
  using Log = std::function<void(const std::string&)>;

  Enrolment(EnrolmentOptions options, Log log);

  // Answers once, on its own thread. kInvalidArgument: the next time too; kUnavailable: try again.
  void Ask(JoinCall call, std::function<void(Expected<Joined>)> answer);

 private:
  Expected<Joined> Join(const JoinCall& call);
  Expected<std::string> Renewed(const JoinCall& call) const;
  Expected<std::string> Admitted(const JoinCall& call) const;

  const EnrolmentOptions options_;
  const Log log_;
  TaskQueue joins_;  // last: it uses the others
};

}  // namespace tactus
