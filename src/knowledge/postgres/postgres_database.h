// A database in PostgreSQL 15 or later, by libpqxx: raw samples in a partition for each day.
#pragma once

#include <memory>
#include <string>

#include "knowledge/sql/database.h"

namespace tactus::knowledge {

// postgresql://USER@HOST:PORT/DATABASE; the database must exist and be the user's. A connection
// that is lost is made anew by what comes next.
Expected<std::unique_ptr<Database>> OpenPostgres(const std::string& uri);

}  // namespace tactus::knowledge
