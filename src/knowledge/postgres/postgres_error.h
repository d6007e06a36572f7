// Errors of libpqxx and libpq as ours.
#pragma once

#include <exception>
#include <string>

#include "base/expected.h"

namespace tactus::knowledge {

// `place` and `what` name the server and what was done.
Error PostgresError(const std::string& place, const std::string& what,
                    const std::exception& thrown);

// Whether the connection is of no use any more.
bool IsConnectionLost(const std::exception& thrown);

}  // namespace tactus::knowledge
