#include "workload/rate_schedule.h"

#include <algorithm>

#include <fmt/format.h>

#include "workload/csv.h"

namespace tactus {
namespace {

constexpr double kMostFactor = 1e6;
constexpr double kLastSecond = 1e6;
constexpr std::string_view kAll = "all";

// The column of each model: its own, or `all`.
Expected<std::vector<std::size_t>> ColumnsOf(const CsvTable& table,
                                             std::span<const std::string> models) {
  if (table.header.front() != "at_s" || table.header.size() < 2) {
    return InvalidArgument(fmt::format(
        "{}: the header must be at_s and then the models' names, or at_s,all", table.where));
  }
  for (std::size_t i = 1; i < table.header.size(); ++i) {
    const std::string& name = table.header[i];
    if (name == kAll || std::find(models.begin(), models.end(), name) != models.end()) continue;
    return NotFound(fmt::format("{}: column '{}' is no model of the scenario", table.where, name));
  }
  std::vector<std::size_t> columns;
  for (const std::string& model : models) {
    auto column = table.Column(model);
    if (!column) column = table.Column(kAll);
    if (!column) {
      return NotFound(
          fmt::format("{}: has no column '{}' and none named 'all'", table.where, model));
    }
    columns.push_back(*column);
  }
  return columns;
}

class Followed final : public Arrivals {
 public:
  Followed(RateSchedule schedule, std::unique_ptr<Arrivals> steady, TimePoint end)
      : schedule_(std::move(schedule)), steady_(std::move(steady)), end_(end) {}

  TimePoint Next() override {
    const TimePoint steady = steady_->Next();
    if (steady == kNever) return kNever;
    // Time of the steady stream passes `factor` times as fast as ours.
    const auto& steps = schedule_.steps;
    for (;;) {
      const RateSchedule::Step& step = steps[step_];
      const double left = static_cast<double>((steady - reached_).count());
      const bool last = step_ + 1 == steps.size();
      if (last && step.factor <= 0) return kNever;
      const double needs = step.factor > 0 ? left / step.factor : -1;
      const double lasts =
          last ? 0 : static_cast<double>((steps[step_ + 1].from - step.from).count());
      if (step.factor > 0 && (last || needs < lasts)) {
        if (needs >= static_cast<double>((end_ - step.from).count())) return kNever;
        return step.from + Nanos(static_cast<std::int64_t>(needs));
      }
      reached_ += Nanos(static_cast<std::int64_t>(lasts * step.factor));
      ++step_;
    }
  }

 private:
  RateSchedule schedule_;
  std::unique_ptr<Arrivals> steady_;
  TimePoint end_;
  std::size_t step_ = 0;
  TimePoint reached_ = kStart;  // of the steady stream, when step_ begins
};

}  // namespace

Expected<std::vector<RateSchedule>> LoadRateSchedule(const std::filesystem::path& path,
                                                     std::span<const std::string> models) {
  const auto table = ReadCsv(path);
  if (!table) return std::unexpected(table.error());
  const auto columns = ColumnsOf(*table, models);
  if (!columns) return std::unexpected(columns.error());
  std::vector<RateSchedule> schedules(models.size());
  double before = -1;
  for (const CsvTable::Row& row : table->rows) {
    const auto at = ParseNumber(row.cells[0]);
    if (!at || *at <= before || *at > kLastSecond || (before < 0 && *at != 0)) {
      return InvalidArgument(fmt::format(
          "{}:{}: at_s '{}' must be seconds, 0 in the first row and rising from row to row",
          table->where, row.line, row.cells[0]));
    }
    before = *at;
    for (std::size_t m = 0; m < models.size(); ++m) {
      const auto factor = ParseNumber(row.cells[(*columns)[m]]);
      if (!factor || *factor < 0 || *factor > kMostFactor) {
        return InvalidArgument(fmt::format("{}:{}: '{}' must be a factor from 0 to {:g}",
                                           table->where, row.line, row.cells[(*columns)[m]],
                                           kMostFactor));
      }
      schedules[m].steps.push_back({kStart + FromSeconds(*at), *factor});
    }
  }
  if (table->rows.empty()) return InvalidArgument(table->where + ": has no row");
  return schedules;
}

std::unique_ptr<Arrivals> Follow(RateSchedule schedule, std::unique_ptr<Arrivals> steady,
                                 TimePoint end) {
  return std::make_unique<Followed>(std::move(schedule), std::move(steady), end);
}

}  // namespace tactus
