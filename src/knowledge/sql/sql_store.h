// The one Store there is: statements that SQLite and PostgreSQL both understand, over a Database.
#pragma once

#include <memory>

#include "knowledge/sql/database.h"
#include "knowledge/store.h"

namespace tactus::knowledge {

// Migrates the database first.
Expected<std::unique_ptr<Store>> OpenSqlStore(std::unique_ptr<Database> database);

// What Store::Retain does (sql_retention.cc).
Expected<Retained> RetainSamples(Database& database, UtcTime now, const Retention& limits);

}  // namespace tactus::knowledge
