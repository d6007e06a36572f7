// Leadership by etcd: a key that lives as long as its leader's lease, and a term that is raised by
// compare-and-swap in the transaction that makes the key.
#pragma once

#include <memory>
#include <string_view>

#include "base/expected.h"
#include "knowledge/coordination.h"

namespace tactus::knowledge {

// "etcd://HOST:PORT[,HOST:PORT...]/NAME". kInvalidArgument where it is not of that form.
Expected<std::unique_ptr<Coordination>> OpenEtcdLease(std::string_view where,
                                                      const LeaseOptions& options);

}  // namespace tactus::knowledge
