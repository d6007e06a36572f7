// Who may do what with this server, and how its connections are kept secret. One object for all
// front ends; the files behind it may change while it is used.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "server/access/scope.h"
#include "server/access/tls_files.h"
#include "server/access/token_list.h"
#include "server/access/watched_file.h"

namespace tactus {

struct AccessOptions {
  TlsFiles tls;                  // without a certificate: no TLS
  std::filesystem::path tokens;  // empty: whoever reaches the server may do everything
};

// Whether a call may go on, and as whom.
struct Admission {
  enum class Outcome { kAdmitted, kNoToken, kUnknownToken, kLacksScope };
  Outcome outcome = Outcome::kAdmitted;
  std::string client;  // the token's name; empty where there are no tokens, or none was needed
  std::string text;    // for the client of a refused call

  bool admitted() const { return outcome == Outcome::kAdmitted; }
  // 401 or 403; UNAUTHENTICATED or PERMISSION_DENIED.
  int http() const { return outcome == Outcome::kLacksScope ? 403 : 401; }
  int grpc() const { return outcome == Outcome::kLacksScope ? 7 : 16; }
};

class Access {
 public:
  using Warn = std::function<void(const std::string&)>;

  // Reads the files. InvalidArgument, with file and remedy, where one is no use.
  static Expected<std::shared_ptr<Access>> Open(AccessOptions options, Warn warn);

  // Reads again what has changed. A file that is no use leaves what was read before in force and is
  // warned of once. From one thread at a time.
  void Refresh();

  bool has_tls() const { return !options_.tls.certificate.empty(); }
  bool has_tokens() const { return !options_.tokens.empty(); }
  bool asks_clients() const { return !options_.tls.client_ca.empty(); }

  // Thread-safe. `authorization` is the header's value: "Bearer TOKEN".
  Admission Admit(Scope needed, std::string_view authorization) const;
  // Thread-safe; another pointer after each change. Null without TLS.
  std::shared_ptr<const TlsMaterial> tls() const { return tls_.load(); }

 private:
  Access(AccessOptions options, Warn warn);
  Status ReadTokens();
  Status ReadCertificates();

  struct TlsState {
    FileState certificate, key, client_ca;
    bool operator==(const TlsState&) const = default;
  };
  TlsState StateOfTls() const;

  const AccessOptions options_;
  const Warn warn_;
  std::atomic<std::shared_ptr<const TlsMaterial>> tls_;
  std::atomic<std::shared_ptr<const TokenList>> tokens_;
  TlsState tls_state_;     // of Refresh
  FileState token_state_;  // of Refresh
};

// What must hold before a server listens on `address`: beyond this machine it needs TLS and tokens,
// or an operator who says that it does not. InvalidArgument with what to do.
Status CheckListening(std::string_view address, bool tls, bool tokens, bool insecure);
inline Status CheckListening(std::string_view address, const Access& access, bool insecure) {
  return CheckListening(address, access.has_tls(), access.has_tokens(), insecure);
}

}  // namespace tactus
