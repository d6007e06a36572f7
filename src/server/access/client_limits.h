// How much of the server one client may have, so that the others have the rest. A client is the
// name of its token, or else its address.
#pragma once

#include <chrono>
#include <cstddef>
#include <expected>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/expected.h"
#include "server/access/byte_budget.h"

namespace tactus {

struct ClientLimitOptions {
  // Each client may have so many:
  std::size_t calls = 12'288;  // under way
  double rate = 0;             // calls per second, with a burst of one second's; 0: any
  // Bytes of bodies that have no answer yet, and of answers that are not out.
  std::size_t bytes = std::size_t{768} << 20;
  std::size_t connections = 768;  // of each address, both protocols
  // The same bytes for all clients together, both protocols.
  std::size_t all_bytes = std::size_t{1} << 30;
};

// "calls=64,rate=100.5,mb=256,connections=32": what is named replaces what `options` says.
// InvalidArgument with the name and what it takes.
Status ReadClientLimits(const std::string& text, ClientLimitOptions& options);

// Thread-safe. Leases may outlive it.
class ClientLimits {
 public:
  using Clock = std::chrono::steady_clock;

  struct OverLimit {
    std::string text;     // for the client
    int retry_after = 1;  // s
  };

  // A call, a connection, or bytes alone; gives its place back at its end.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept = default;
    Lease& operator=(Lease&& other) noexcept {
      Return();
      body_ = std::move(other.body_);
      client_ = std::move(other.client_);
      kind_ = other.kind_;
      return *this;
    }
    ~Lease() { Return(); }

   private:
    friend class ClientLimits;
    void Return();

    std::shared_ptr<struct ClientBook> body_;  // null: of nothing
    std::string client_;
    enum class Kind { kConnection, kCall, kBytes } kind_ = Kind::kConnection;
  };
  struct Call {
    Lease lease;
    std::shared_ptr<ByteBudget> bytes;  // the client's, for as long as any are taken
  };

  explicit ClientLimits(ClientLimitOptions options);

  std::expected<Lease, OverLimit> Connect(const std::string& client);
  std::expected<Call, OverLimit> Begin(const std::string& client, Clock::time_point now);
  // Bytes of what counts as no call.
  Call Hold(const std::string& client);

  const ClientLimitOptions& options() const;
  const std::shared_ptr<ByteBudget>& all_bytes() const;
  // Clients that have anything, or had it lately: for tests.
  std::size_t known() const;

  // What a client hears whose bytes do not fit.
  static std::string BytesText(ByteBudget::Taken taken);

 private:
  std::shared_ptr<ClientBook> body_;
};

}  // namespace tactus
