#include "knowledge/coordination.h"

#include "knowledge/etcd/etcd_lease.h"
#include "knowledge/file_lock.h"
#ifdef TACTUS_HAVE_LIBPQ
#include "knowledge/postgres/advisory_lock.h"
#endif

namespace tactus::knowledge {

Expected<std::unique_ptr<Coordination>> OpenCoordination(std::string_view where,
                                                         const LeaseOptions& options) {
  constexpr std::string_view kFile = "sqlite:";
  constexpr Duration kShortest = Seconds(2);  // etcd grants no less, and networks have hiccups
  if (options.length < kShortest) {
    return InvalidArgument("a leader's lease of less than 2 s; make it longer");
  }
  if (where.starts_with(kFile) && where.size() > kFile.size()) {
    return std::make_unique<FileLock>(std::string(where.substr(kFile.size())), options);
  }
  if (where.starts_with("etcd://")) return OpenEtcdLease(where, options);
  if (where.starts_with("postgresql://") || where.starts_with("postgres://")) {
#ifdef TACTUS_HAVE_LIBPQ
    return std::make_unique<AdvisoryLock>(where, options);
#else
    return InvalidArgument(
        "leadership by PostgreSQL: this tactus was built without libpq; "
        "run ./run build postgres");
#endif
  }
  return InvalidArgument("no leadership is called '" + std::string(where) +
                         "'; write sqlite:PATH, postgresql://USER@HOST:PORT/DATABASE or "
                         "etcd://HOST:PORT/NAME");
}

}  // namespace tactus::knowledge
