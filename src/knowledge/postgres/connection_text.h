// postgresql://USER:PASSWORD@HOST:PORT/DATABASE?KEY=VALUE, as libpq reads it.
// https://www.postgresql.org/docs/15/libpq-connect.html#LIBPQ-CONNSTRING
#pragma once

#include <string>
#include <string_view>

namespace tactus::knowledge {

// For messages: the server and the database, neither user nor password nor keys.
std::string PlaceOf(std::string_view uri);

// With the limits after which a silent server counts as away, where the URI does not say its own.
std::string WithLimits(std::string_view uri);

}  // namespace tactus::knowledge
