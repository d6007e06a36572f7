// A database in one file, by SQLite: a write-ahead log, and every commit is on disk when it
// returns.
#pragma once

#include <memory>
#include <string>

#include "knowledge/sql/database.h"

namespace tactus::knowledge {

// Makes the file where there is none; its folder must exist. https://sqlite.org/wal.html
Expected<std::unique_ptr<Database>> OpenSqlite(const std::string& path);

}  // namespace tactus::knowledge
