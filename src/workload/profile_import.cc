// Profiles from tables that were measured elsewhere.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "workload/csv.h"
#include "workload/profile_file.h"

namespace tactus {
namespace {

constexpr double kSlowestMillis = 1e9;
constexpr int kLargestImported = 4096;

// The first problem of a table is kept; reading goes on with zeros.
class Columns {
 public:
  explicit Columns(const CsvTable& table) : table_(table) {}

  bool Has(std::string_view name) const { return table_.Column(name).has_value(); }

  std::string Text(const CsvTable::Row& row, std::string_view name) {
    const auto column = table_.Column(name);
    if (!column) {
      Complain(row, fmt::format("the header has no column '{}'", name));
      return "";
    }
    if (row.cells[*column].empty()) Complain(row, fmt::format("column {}: is empty", name));
    return row.cells[*column];
  }
  double Number(const CsvTable::Row& row, std::string_view name, double low) {
    const std::string text = Text(row, name);
    const auto number = ParseNumber(text);
    if (number && *number >= low && *number <= kSlowestMillis) return *number;
    Complain(row, fmt::format("column {}: '{}' is not a number from {} on", name, text, low));
    return low;
  }
  double NumberOr(const CsvTable::Row& row, std::string_view name, double fallback) {
    return Has(name) ? Number(row, name, 0) : fallback;
  }
  void Complain(const CsvTable::Row& row, std::string_view what) {
    if (problem_.empty()) problem_ = fmt::format("{}:{}: {}", table_.where, row.line, what);
  }
  const std::string& problem() const { return problem_; }

 private:
  const CsvTable& table_;
  std::string problem_;
};

std::string Provenance(const CsvTable& table) {
  const std::string name = std::filesystem::path(table.where).filename().string();
  if (table.comment.empty()) return fmt::format("imported from {}", name);
  return fmt::format("imported from {}: {}", name, table.comment);
}

ProfileCell Exactly(double ms) {
  return {.mean_ms = ms, .min_ms = ms, .p50_ms = ms, .p95_ms = ms, .p99_ms = ms, .max_ms = ms};
}

ProfileCell ReadCell(Columns& columns, const CsvTable::Row& row) {
  if (columns.Has("latency_ms")) return Exactly(columns.Number(row, "latency_ms", 0));
  ProfileCell cell;
  cell.p50_ms = columns.Number(row, "p50_ms", 0);
  cell.mean_ms = columns.NumberOr(row, "mean_ms", cell.p50_ms);
  cell.min_ms = columns.NumberOr(row, "min_ms", cell.p50_ms);
  cell.p95_ms = columns.NumberOr(row, "p95_ms", cell.p50_ms);
  cell.p99_ms = columns.NumberOr(row, "p99_ms", cell.p95_ms);
  cell.max_ms = columns.NumberOr(row, "max_ms", cell.p99_ms);
  cell.repetitions = static_cast<int>(columns.NumberOr(row, "n", 0));
  if (cell.min_ms > cell.p50_ms || cell.p50_ms > cell.p95_ms || cell.p95_ms > cell.p99_ms ||
      cell.p99_ms > cell.max_ms) {
    columns.Complain(row, "min, P50, P95, P99 and max must not decrease in this order");
  }
  return cell;
}

template <class Named>
Named& FindOrAdd(std::vector<Named>& items, const std::string& name) {
  for (Named& item : items) {
    if (item.name == name) return item;
  }
  items.emplace_back().name = name;
  return items.back();
}

void ReadRow(Columns& columns, const CsvTable::Row& row, ProfileFile& profile) {
  ProfiledModel& model = FindOrAdd(profile.models, columns.Text(row, "model"));
  ProfiledExit& exit = FindOrAdd(model.exits, columns.Text(row, "exit"));
  const double batch = columns.Number(row, "batch", 1);
  const ProfileCell cell = ReadCell(columns, row);
  if (batch != std::floor(batch) || batch > kLargestImported) {
    return columns.Complain(row, fmt::format("column batch: must be 1 to {}", kLargestImported));
  }
  if (cell.mean_ms <= 0) return columns.Complain(row, "a latency must be above 0");
  const auto index = static_cast<std::size_t>(batch) - 1;
  if (exit.cells.size() <= index) exit.cells.resize(index + 1);
  if (exit.cells[index].mean_ms > 0) return columns.Complain(row, "this batch is there twice");
  exit.cells[index] = cell;
}

}  // namespace

Expected<ProfileFile> ImportAlphaBeta(const std::filesystem::path& csv, int max_batch) {
  const auto table = ReadCsv(csv);
  if (!table) return std::unexpected(table.error());
  if (max_batch < 1 || max_batch > kLargestImported) {
    return InvalidArgument(fmt::format("the largest batch must be 1 to {}", kLargestImported));
  }
  Columns columns(*table);
  ProfileFile profile;
  profile.provenance = Provenance(*table) + " (alpha, beta)";
  for (const CsvTable::Row& row : table->rows) {
    ProfiledModel model;
    model.name = columns.Text(row, "model");
    model.max_batch = max_batch;
    model.slo_ms = columns.NumberOr(row, "slo_ms", 0);
    const double alpha = columns.Number(row, "alpha_ms", 0);
    const double beta = columns.Number(row, "beta_ms", 0);
    if (alpha + beta <= 0) columns.Complain(row, "alpha and beta must not both be 0");
    if (profile.Find(model.name) != nullptr) columns.Complain(row, "this model is there twice");
    ProfiledExit& exit = model.exits.emplace_back();
    exit.name = "final";
    for (int b = 1; b <= max_batch; ++b) exit.cells.push_back(Exactly(alpha * b + beta));
    Fit(exit);
    profile.models.push_back(std::move(model));
  }
  if (!columns.problem().empty()) return InvalidArgument(columns.problem());
  if (profile.models.empty()) {
    return InvalidArgument(fmt::format("{}: holds no model", table->where));
  }
  return profile;
}

Expected<ProfileFile> ImportCells(const std::filesystem::path& csv) {
  const auto table = ReadCsv(csv);
  if (!table) return std::unexpected(table.error());
  Columns columns(*table);
  ProfileFile profile;
  profile.provenance = Provenance(*table);
  for (const CsvTable::Row& row : table->rows) ReadRow(columns, row, profile);
  if (!columns.problem().empty()) return InvalidArgument(columns.problem());
  if (profile.models.empty()) {
    return InvalidArgument(fmt::format("{}: holds no model", table->where));
  }
  for (ProfiledModel& model : profile.models) {
    for (ProfiledExit& exit : model.exits) {
      model.max_batch = std::max(model.max_batch, static_cast<int>(exit.cells.size()));
    }
    for (ProfiledExit& exit : model.exits) {
      exit.cells.resize(model.max_batch);
      for (int b = 1; b <= model.max_batch; ++b) {
        if (exit.cells[b - 1].mean_ms > 0) continue;
        return InvalidArgument(
            fmt::format("{}: model '{}' exit '{}': batch {} of 1 to {} is missing", table->where,
                        model.name, exit.name, b, model.max_batch));
      }
      Fit(exit);
    }
  }
  return profile;
}

Expected<ProfileFile> ReadAnyProfile(const std::filesystem::path& path, int max_batch) {
  if (path.extension() != ".csv") return LoadProfile(path);
  const auto table = ReadCsv(path);
  if (!table) return std::unexpected(table.error());
  return table->Column("alpha_ms") ? ImportAlphaBeta(path, max_batch) : ImportCells(path);
}

}  // namespace tactus
