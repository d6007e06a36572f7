// A database in PostgreSQL 15 or later, by libpq: samples in a partition for each day.
#pragma once

#include <memory>
#include <string_view>

#include "knowledge/sql/database.h"

namespace tactus::knowledge {

// postgresql://USER@HOST:PORT/DATABASE; the database must exist and be the user's. A connection
// that is lost is made anew by what comes next.
Expected<std::unique_ptr<Database>> OpenPostgres(std::string_view uri);

}  // namespace tactus::knowledge
