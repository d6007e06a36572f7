#include "knowledge/store.h"

#include "knowledge/sql/sql_store.h"
#include "knowledge/sqlite/sqlite_database.h"
#ifdef TACTUS_HAVE_LIBPQXX
#include "knowledge/postgres/postgres_database.h"
#endif

namespace tactus::knowledge {
namespace {

constexpr std::string_view kSqlitePrefix = "sqlite:";

}  // namespace

Expected<std::unique_ptr<Store>> OpenStore(std::string_view where) {
  if (where.starts_with(kSqlitePrefix) && where.size() > kSqlitePrefix.size()) {
    auto database = OpenSqlite(std::string(where.substr(kSqlitePrefix.size())));
    if (!database) return std::unexpected(database.error());
    return OpenSqlStore(std::move(*database));
  }
  if (where.starts_with("postgresql://") || where.starts_with("postgres://")) {
#ifdef TACTUS_HAVE_LIBPQXX
    auto database = OpenPostgres(std::string(where));
    if (!database) return std::unexpected(database.error());
    return OpenSqlStore(std::move(*database));
#else
    return InvalidArgument(
        "a knowledge base in PostgreSQL: this tactus was built without libpqxx; "
        "run ./run build postgres, or take sqlite:PATH");
#endif
  }
  return InvalidArgument("no knowledge base is called '" + std::string(where) +
                         "'; write sqlite:PATH or postgresql://USER@HOST:PORT/DATABASE");
}

}  // namespace tactus::knowledge
