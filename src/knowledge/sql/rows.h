// Records as rows of a database, and back.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
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
  VisitFields(record, [&](const char*, const auto& field) { row.push_back(Encode(field)); });
  return row;
}

template <class Record>
Record RecordOf(const Row& row) {
  Record record;
  std::size_t at = 0;
  VisitFields(record, [&](const char*, auto& field) { Decode(row.at(at++), field); });
  return record;
}

template <class Record>
std::vector<std::string> ColumnsOf() {
  return {Fields<Record>::kColumns.begin(), Fields<Record>::kColumns.end()};
}

// "INSERT INTO table (a, b) VALUES ($1, $2)".
std::string InsertSql(std::string_view table, const std::vector<std::string>& columns);

template <class Record>
std::string InsertSql() {
  return InsertSql(Fields<Record>::kTable, ColumnsOf<Record>());
}

}  // namespace tactus::knowledge
