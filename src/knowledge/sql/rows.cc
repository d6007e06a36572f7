#include "knowledge/sql/rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tactus::knowledge {
namespace {

std::vector<std::string> NamesOf(const std::vector<Column>& columns) {
  std::vector<std::string> names;
  for (const Column& column : columns) names.push_back(column.name);
  return names;
}

bool IsKey(const Column& column) { return column.role == Role::kKey || column.role == Role::kAt; }

// A column's aggregate over rows that stand for `samples` samples each.
std::string AggregateOf(const Column& column, std::chrono::microseconds unit, bool weighted) {
  const std::string& name = column.name;
  const std::string_view type = column.real ? "DOUBLE PRECISION" : "BIGINT";
  switch (column.role) {
    case Role::kAt:
      return fmt::format("({0} / {1}) * {1}", name, unit.count());
    case Role::kKey:
      return name;
    case Role::kSum:
      return fmt::format("CAST(sum({}) AS {})", name, type);
    case Role::kMost:
      return fmt::format("max({})", name);
    case Role::kMean:
      break;
  }
  return weighted ? fmt::format("CAST(sum({0} * samples) AS {1}) / CAST(sum(samples) AS {1})", name,
                                type)
                  : fmt::format("CAST(sum({0}) AS {1}) / count(*)", name, type);
}

}  // namespace

std::string_view NameOf(PlanFate fate) {
  switch (fate) {
    case PlanFate::kProposed:
      return "proposed";
    case PlanFate::kAdopted:
      return "adopted";
    case PlanFate::kAbandoned:
      break;
  }
  return "abandoned";
}

PlanFate FateOf(std::string_view name) {
  if (name == "adopted") return PlanFate::kAdopted;
  return name == "proposed" ? PlanFate::kProposed : PlanFate::kAbandoned;
}

std::string InsertSql(const std::string& table, const std::vector<Column>& columns) {
  std::vector<std::string> places;
  for (std::size_t i = 1; i <= columns.size(); ++i) places.push_back(fmt::format("${}", i));
  return fmt::format("INSERT INTO {} ({}) VALUES ({})", table, fmt::join(NamesOf(columns), ", "),
                     fmt::join(places, ", "));
}

std::string UpsertSql(const std::string& table, const std::vector<Column>& columns) {
  std::vector<std::string> keys, others;
  for (const Column& column : columns) {
    if (IsKey(column)) {
      keys.push_back(column.name);
    } else {
      others.push_back(fmt::format("{0} = excluded.{0}", column.name));
    }
  }
  return fmt::format("{} ON CONFLICT ({}) DO UPDATE SET {}", InsertSql(table, columns),
                     fmt::join(keys, ", "), fmt::join(others, ", "));
}

std::string SelectSql(const std::string& table, const std::vector<Column>& columns,
                      const std::string& where) {
  std::vector<std::string> order;
  for (const Column& column : columns) {
    if (IsKey(column)) order.push_back(column.name);
  }
  return fmt::format("SELECT {} FROM {}{}{} ORDER BY {}", fmt::join(NamesOf(columns), ", "), table,
                     where.empty() ? "" : " WHERE ", where, fmt::join(order, ", "));
}

std::string RollUpSql(const std::string& from, const std::string& to,
                      const std::vector<Column>& columns, std::chrono::microseconds unit,
                      bool weighted) {
  std::vector<std::string> values, keys;
  for (const Column& column : columns) {
    values.push_back(AggregateOf(column, unit, weighted));
    if (IsKey(column)) keys.push_back(values.back());
  }
  return fmt::format(
      "INSERT INTO {} ({}, samples) SELECT {}, {} FROM {} WHERE at >= $1 AND at < $2 GROUP BY {}",
      to, fmt::join(NamesOf(columns), ", "), fmt::join(values, ", "),
      weighted ? "CAST(sum(samples) AS BIGINT)" : "count(*)", from, fmt::join(keys, ", "));
}

}  // namespace tactus::knowledge
