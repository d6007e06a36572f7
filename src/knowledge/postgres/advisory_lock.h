// Leadership by an advisory lock of PostgreSQL, held by a session of its own. The server ends the
// session, and with it the lock, when its controller is gone or silent for longer than the lease.
#pragma once

#include <string>
#include <string_view>

#include "knowledge/coordination.h"
#include "knowledge/postgres/postgres_connection.h"

namespace tactus::knowledge {

class AdvisoryLock : public Coordination {
 public:
  AdvisoryLock(std::string_view uri, const LeaseOptions& options);
  ~AdvisoryLock() override;

  const std::string& place() const override { return session_.place(); }
  Expected<std::uint64_t> Acquire(TimePoint now, std::uint64_t above) override;
  Status Renew(TimePoint now) override;
  void Resign() override;

 private:
  // The term; 0: another holds the lock.
  Expected<std::uint64_t> TryLock(std::uint64_t above);
  // The first cell of the answer; a text without characters: there is no row.
  Expected<Value> Ask(const std::string& sql, const Row& values = {});

  const LeaseOptions options_;
  PostgresConnection session_;
};

}  // namespace tactus::knowledge
