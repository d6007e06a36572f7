// The schema, as the numbered steps that make it. A step is never changed once it was released: a
// new one follows it.
#pragma once

#include <span>

#include "knowledge/sql/database.h"

namespace tactus::knowledge {

struct Migration {
  std::int64_t version;  // of the schema that it makes
  std::string_view what;
  // Both databases'; {partitioned} stands for Dialect::partitioned.
  std::string_view sql;
};

// Ascending from 1, without gaps.
std::span<const Migration> Migrations();

// Takes the schema from whatever it is, also nothing, to `last`, each step in one transaction.
// kInvalidArgument where it is newer than `last`.
Status Migrate(Database& database, std::int64_t last = Migrations().back().version);

}  // namespace tactus::knowledge
