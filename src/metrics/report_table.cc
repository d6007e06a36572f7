// The report as people read it. Only columns that say something are shown.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "metrics/report.h"

namespace tactus {
namespace {

constexpr std::size_t kWidth = 120;

// Cells of a table; the first column is text, aligned left, the others are numbers, aligned right.
class Grid {
 public:
  explicit Grid(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  std::string Print() const {
    std::vector<std::size_t> widths(rows_.front().size());
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    // What does not fit is taken from the names.
    std::size_t total = 2 * (widths.size() - 1);
    for (const std::size_t width : widths) total += width;
    if (total > kWidth) widths[0] -= std::min(widths[0] - kShortestName, total - kWidth);
    std::string text;
    for (const auto& row : rows_) {
      std::string name = row[0];
      if (name.size() > widths[0]) name = name.substr(0, widths[0] - 2) + "..";
      std::string line = fmt::format("{:<{}}", name, widths[0]);
      for (std::size_t i = 1; i < row.size(); ++i) {
        line += fmt::format("  {:>{}}", row[i], widths[i]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text;
  }

 private:
  static constexpr std::size_t kShortestName = 8;
  std::vector<std::vector<std::string>> rows_;
};

std::string Percent(double ratio) { return fmt::format("{:.2f}", 100 * ratio); }
std::string Millis(double ms) { return fmt::format("{:.{}f}", ms, ms < 10 ? 2 : 1); }
std::string Rate(double rps) { return fmt::format("{:.{}f}", rps, rps < 100 ? 1 : 0); }
std::string Accuracy(double accuracy) {
  return accuracy > 0 ? fmt::format("{:.1f}", 100 * accuracy) : "-";
}

// "20", or "20-50" where models differ.
std::string SloOf(const RunReport& run) {
  if (run.models.empty()) return "-";
  const auto [least, most] = std::minmax_element(
      run.models.begin(), run.models.end(),
      [](const ModelSummary& a, const ModelSummary& b) { return a.slo_ms < b.slo_ms; });
  if (least->slo_ms == most->slo_ms) return fmt::format("{:.4g}", least->slo_ms);
  return fmt::format("{:.4g}-{:.4g}", least->slo_ms, most->slo_ms);
}

// "10/32/3/55": percent of each exit, shallowest first; "-" where there is but one.
std::string ExitsOf(const Summary& s) {
  if (s.exits.size() < 2) return "-";
  std::string text;
  for (const ExitShare& exit : s.exits) {
    text += fmt::format("{}{:.0f}", text.empty() ? "" : "/", 100 * exit.share);
  }
  return text;
}

struct Column {
  std::string header;
  std::function<std::string(const Summary&)> text;
};

// The columns that all rows share, after the name and before the lanes.
std::vector<Column> FigureColumns(std::span<const RunReport> runs) {
  std::vector<Column> columns = {
      {"offered/s", [](const Summary& s) { return Rate(s.offered_rps); }},
      {"goodput/s", [](const Summary& s) { return Rate(s.goodput_rps); }},
      {"bad %", [](const Summary& s) { return Percent(s.bad_ratio); }},
      {"P50 ms", [](const Summary& s) { return Millis(s.p50_ms); }},
      {"P95 ms", [](const Summary& s) { return Millis(s.p95_ms); }},
      {"P99 ms", [](const Summary& s) { return Millis(s.p99_ms); }},
      {"batch", [](const Summary& s) { return fmt::format("{:.1f}", s.mean_batch); }},
  };
  const auto any = [&](auto holds) { return std::any_of(runs.begin(), runs.end(), holds); };
  if (any([](const RunReport& run) { return run.all.accuracy > 0; })) {
    columns.push_back({"acc %", [](const Summary& s) { return Accuracy(s.accuracy); }});
  }
  if (any([](const RunReport& run) { return run.all.measured_accuracy.has_value(); })) {
    columns.push_back({"real acc %", [](const Summary& s) {
                         return s.measured_accuracy ? Accuracy(*s.measured_accuracy) : "-";
                       }});
  }
  return columns;
}

std::string NameOf(const RunReport& run) {
  std::string name;
  for (const auto& [key, value] : run.settings) name += fmt::format("{}={} ", key, value);
  return name + run.policy;
}

std::string LostOf(const Summary& s) {
  std::string text;
  for (int i = 0; i < kOutcomes; ++i) {
    const auto outcome = static_cast<Outcome>(i);
    if (outcome == Outcome::kMet || s.outcomes[i] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", Name(outcome), s.outcomes[i]);
  }
  return text.empty() ? "all met" : text;
}

}  // namespace

std::string ToTable(std::span<const RunReport> runs, bool wide) {
  if (runs.empty()) return "";
  const std::vector<Column> columns = FigureColumns(runs);
  const bool limited = std::any_of(runs.begin(), runs.end(), [](const RunReport& run) {
    return run.accuracy_limit.has_value();
  });
  std::vector<std::string> header = {"policy", "SLO ms"};
  for (const Column& column : columns) header.push_back(column.header);
  if (limited) header.push_back("limit %");
  header.push_back("busy %");
  header.push_back("exits %, 1st/../last");
  Grid grid(header);
  for (const RunReport& run : runs) {
    const auto add = [&](std::string name, std::string slo, const Summary& s, bool is_run) {
      std::vector<std::string> row = {std::move(name), std::move(slo)};
      for (const Column& column : columns) row.push_back(column.text(s));
      if (limited) row.push_back(is_run ? Accuracy(run.accuracy_limit.value_or(0)) : "");
      double busy = 0;
      for (const LaneSummary& lane : run.lanes) busy += lane.busy_ratio;
      const auto lanes = static_cast<double>(std::max<std::size_t>(run.lanes.size(), 1));
      row.push_back(is_run ? fmt::format("{:.0f}", 100 * busy / lanes) : "");
      row.push_back(ExitsOf(s));
      grid.Add(std::move(row));
    };
    add(NameOf(run), SloOf(run), run.all, true);
    if (!wide) continue;
    for (const ModelSummary& model : run.models) {
      add("  " + model.name, fmt::format("{:.4g}", model.slo_ms), model.figures, false);
    }
  }
  std::string text = grid.Print();
  if (wide) {
    for (const RunReport& run : runs) {
      text += fmt::format("{}: {} requests, {}\n", NameOf(run), run.all.requests, LostOf(run.all));
    }
  }
  return text;
}

std::string ToText(std::span<const Check> checks) {
  std::string text;
  for (const Check& check : checks) {
    text += fmt::format("{}  {}: {:.4g} (bar {})\n", check.ok ? "ok  " : "MISS", check.what,
                        check.value, check.bar);
  }
  return text;
}

}  // namespace tactus
