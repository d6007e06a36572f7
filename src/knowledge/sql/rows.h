// Records as rows of a database, and back.
#pragma once

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "knowledge/sql/database.h"
#include "knowledge/sql/fields.h"

namespace tactus::knowledge {

std::string_view NameOf(PlanFate fate);
PlanFate FateOf(std::string_view name);

template <class T>
Value Encode(const T& field) {
  if constexpr (std::same_as<T, std::string> || std::same_as<T, double>) {
    return field;
  } else if constexpr (std::same_as<T, UtcTime>) {
    return std::int64_t{field.time_since_epoch().count()};
  } else if constexpr (std::same_as<T, Duration>) {
    return std::int64_t{field.count()};
  } else if constexpr (std::same_as<T, PlanFate>) {
    return std::string(NameOf(field));
  } else {
    static_assert(std::integral<T>);
    return static_cast<std::int64_t>(field);
  }
}

template <class T>
void Decode(const Value& value, T& field) {
  if constexpr (std::same_as<T, std::string> || std::same_as<T, double>) {
    field = std::get<T>(value);
  } else if constexpr (std::same_as<T, UtcTime>) {
    field = UtcTime(std::chrono::microseconds(std::get<std::int64_t>(value)));
  } else if constexpr (std::same_as<T, Duration>) {
    field = Duration(std::get<std::int64_t>(value));
  } else if constexpr (std::same_as<T, PlanFate>) {
    field = FateOf(std::get<std::string>(value));
  } else {
    field = static_cast<T>(std::get<std::int64_t>(value));
  }
}

template <class Record>
Row RowOf(const Record& record) {
  Row row;
  Fields<Record>::Visit(
      record, [&](const char*, const auto& field, Role) { row.push_back(Encode(field)); });
  return row;
}

template <class Record>
Record RecordOf(const Row& row) {
  Record record;
  std::size_t at = 0;
  Fields<Record>::Visit(record,
                        [&](const char*, auto& field, Role) { Decode(row.at(at++), field); });
  return record;
}

struct Column {
  std::string name;
  Role role = Role::kKey;
  bool real = false;  // a double
};

template <class Record>
std::vector<Column> ColumnsOf() {
  std::vector<Column> columns;
  const Record record;
  Fields<Record>::Visit(record, [&]<class T>(const char* name, const T&, Role role) {
    columns.push_back({name, role, std::same_as<T, double>});
  });
  return columns;
}

// The statements, of a table and its columns. Parameters in the columns' order.
std::string InsertSql(const std::string& table, const std::vector<Column>& columns);
// Replaces the row of the same key.
std::string UpsertSql(const std::string& table, const std::vector<Column>& columns);
// Ordered by instant and key. `where` may be empty.
std::string SelectSql(const std::string& table, const std::vector<Column>& columns,
                      const std::string& where);
// Of samples in [$1, $2) of `from`, a row for each unit and key, into `to`. `weighted`: `from` is a
// roll-up itself, and says of how many samples each row is.
std::string RollUpSql(const std::string& from, const std::string& to,
                      const std::vector<Column>& columns, std::chrono::microseconds unit,
                      bool weighted);

}  // namespace tactus::knowledge
