// The report as people read it. Only columns that say something are shown.
#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "metrics/report.h"
#include "metrics/text_table.h"

namespace tactus {
namespace {

std::string Percent(double ratio) { return fmt::format("{:.2f}", 100 * ratio); }
std::string Millis(double ms) { return fmt::format("{:.{}f}", ms, ms < 10 ? 2 : 1); }
std::string Rate(double rps) { return fmt::format("{:.{}f}", rps, rps < 100 ? 1 : 0); }
std::string Accuracy(double accuracy) {
  return accuracy > 0 ? fmt::format("{:.1f}", 100 * accuracy) : "-";
}

// "20"; "none" where a server states no SLO, and every answer is in time.
std::string SloText(double slo_ms) { return slo_ms > 0 ? fmt::format("{:.4g}", slo_ms) : "none"; }

// "20", or "20-50" where models differ; "20, none" where one has none.
std::string SloOf(const RunReport& run) {
  std::set<double> slos;
  for (const ModelSummary& model : run.models) slos.insert(model.slo_ms);
  const bool none = slos.erase(0) > 0;
  if (slos.empty()) return none ? SloText(0) : "-";
  std::string text = SloText(*slos.begin());
  if (slos.size() > 1) text += "-" + SloText(*slos.rbegin());
  return none ? text + ", " + SloText(0) : text;
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

// Of all lanes together.
std::string BusyOf(const RunReport& run) {
  if (run.lanes.empty()) return "-";
  return fmt::format("{:.0f}", 100 * BusyRatio(run));
}

struct Column {
  std::string what;
  std::string unit;
  int spare;  // as TextTable has it
  std::function<std::string(const Summary&)> text;
};

// The columns that all rows share, after the name and before the lanes.
std::vector<Column> FigureColumns(std::span<const RunReport> runs) {
  std::vector<Column> columns = {
      {"offered", "r/s", 4, [](const Summary& s) { return Rate(s.offered_rps); }},
      {"goodput", "r/s", 0, [](const Summary& s) { return Rate(s.goodput_rps); }},
      {"viol.", "%", 0, [](const Summary& s) { return Percent(s.bad_ratio); }},
      {"P50", "ms", 7, [](const Summary& s) { return Millis(s.p50_ms); }},
      {"P95", "ms", 5, [](const Summary& s) { return Millis(s.p95_ms); }},
      {"P99", "ms", 0, [](const Summary& s) { return Millis(s.p99_ms); }},
      {"batch", "", 6, [](const Summary& s) { return fmt::format("{:.1f}", s.mean_batch); }},
  };
  const auto any = [&](auto holds) { return std::any_of(runs.begin(), runs.end(), holds); };
  if (any([](const RunReport& run) { return run.all.accuracy > 0; })) {
    columns.push_back({"acc", "%", 0, [](const Summary& s) { return Accuracy(s.accuracy); }});
  }
  if (any([](const RunReport& run) { return run.all.measured_accuracy.has_value(); })) {
    columns.push_back({"real acc", "%", 1, [](const Summary& s) {
                         return s.measured_accuracy ? Accuracy(*s.measured_accuracy) : "-";
                       }});
  }
  return columns;
}

// "viol. 1", "viol. 2": the violation ratio of each priority.
std::vector<std::string> PriorityCells(const RunReport& run, std::size_t columns) {
  std::vector<std::string> cells;
  for (const PrioritySummary& level : run.priorities) {
    cells.push_back(Percent(level.figures.bad_ratio));
  }
  cells.resize(columns);
  return cells;
}

// Under the table: "symphony, rate_rps=100", as runs of a sweep differ in their settings alone.
std::string NameOf(const RunReport& run) {
  std::string name = run.policy.empty() ? "all" : run.policy;
  for (const auto& [key, value] : run.settings) name += fmt::format(", {}={}", key, value);
  return name;
}

std::string PredictionOf(const RunReport& run) {
  const PredictionSummary& p = *run.prediction;
  return fmt::format(
      "{}: predictions of {} batches with neighbours were off by {:.1f} % at P50, {:.1f} % at P95, "
      "{:.1f} % at P99; neighbours cost {:.0f} % at P50, {:.0f} % at P99\n",
      NameOf(run), p.batches, 100 * p.p50, 100 * p.p95, 100 * p.p99, 100 * p.overhead_p50,
      100 * p.overhead_p99);
}

// "symphony: 2 lanes fast busy 93 %, 6 plain busy 20 %"; empty where lanes are alike.
std::string KindsOf(const RunReport& run) {
  std::string text;
  for (auto first = run.lanes.begin(); first != run.lanes.end();) {
    const auto last = std::find_if(
        first, run.lanes.end(), [&](const LaneSummary& lane) { return lane.kind != first->kind; });
    if (first->kind.empty()) return "";
    RunReport kind;
    kind.lanes.assign(first, last);
    text += fmt::format("{} {} {} busy {} %", text.empty() ? NameOf(run) + ": lanes," : ",",
                        last - first, first->kind, BusyOf(kind));
    first = last;
  }
  return text.empty() ? "" : text + "\n";
}

std::string OutcomesOf(const Summary& s) {
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
  // A server's policy is its own affair: who calls it may not know it.
  const bool named = std::ranges::any_of(runs, [](const auto& run) { return !run.policy.empty(); });
  TextTable grid;
  grid.AddColumn(named ? "policy" : "model", "");
  for (const auto& [key, value] : runs.front().settings) grid.AddColumn(key, "");
  grid.AddColumn("SLO", "ms", 3);
  for (const Column& column : columns) grid.AddColumn(column.what, column.unit, column.spare);
  if (limited) grid.AddColumn("limit", "%", 9);  // largest batch always/as the rate allows
  const std::size_t levels = runs.front().priorities.size();
  for (const PrioritySummary& level : runs.front().priorities) {
    grid.AddColumn(fmt::format("viol. {}", level.priority), "%");
  }
  const bool several =
      std::ranges::any_of(runs, [](const auto& run) { return run.lanes.size() > 1; });
  if (several) grid.AddColumn("lanes", "touched", 8);
  grid.AddColumn("busy", "%", 2);
  grid.AddColumn("exits", "%");
  for (const RunReport& run : runs) {
    std::vector<std::string> row = {named ? run.policy : "all"};
    for (const auto& [key, value] : run.settings) row.push_back(value);
    row.push_back(SloOf(run));
    for (const Column& column : columns) row.push_back(column.text(run.all));
    if (limited) {
      row.push_back(Accuracy(run.accuracy_limit.value_or(0)) + "/" +
                    Accuracy(run.accuracy_limit_by_rate.value_or(0)));
    }
    for (std::string& cell : PriorityCells(run, levels)) row.push_back(std::move(cell));
    if (several) row.push_back(fmt::format("{:.4g}", run.lanes_touched));
    row.push_back(BusyOf(run));
    row.push_back(ExitsOf(run.all));
    grid.Add(std::move(row));
    if (!wide) continue;
    for (const ModelSummary& model : run.models) {
      std::vector<std::string> part = {"  " + model.name};
      part.resize(1 + run.settings.size());
      part.push_back(SloText(model.slo_ms));
      for (const Column& column : columns) part.push_back(column.text(model.figures));
      part.resize(part.size() + (limited ? 1 : 0) + levels + (several ? 2 : 1));
      part.push_back(ExitsOf(model.figures));
      grid.Add(std::move(part));
    }
  }
  std::string text = grid.Print();
  for (const RunReport& run : runs) {
    if (run.prediction) text += PredictionOf(run);
    text += KindsOf(run);
  }
  if (!wide) return text;
  for (const RunReport& run : runs) {
    text +=
        fmt::format("{}: {} requests, {}\n", NameOf(run), run.all.requests, OutcomesOf(run.all));
  }
  return text;
}

std::string PipelineTable(std::span<const RunReport> runs) {
  TextTable table;
  table.AddColumn("requests to", "");
  for (const auto& [key, value] : runs.front().settings) table.AddColumn(key, "");
  table.AddColumns(
      "SLO [ms]|offered [requests/s]|on time [requests/s]|violations [%]|late [%]|"
      "dropped [%]|P50 [ms]|P95 [ms]|P99 [ms]");
  bool any = false;
  for (const RunReport& run : runs) {
    for (const PipelineSummary& p : run.pipelines) {
      any = true;
      const double requests = std::max(1.0, static_cast<double>(p.requests()));
      std::vector<std::string> row = {runs.size() > 1 ? fmt::format("{}, {}", p.name, run.policy)
                                                      : p.name};
      for (const auto& [key, value] : run.settings) row.push_back(value);
      for (std::string cell :
           {fmt::format("{:.4g}", p.slo_ms), Rate(p.offered_rps), Rate(p.goodput_rps),
            Percent(p.bad_ratio), Percent(static_cast<double>(p.late) / requests),
            Percent(static_cast<double>(p.dropped()) / requests), Millis(p.p50_ms),
            Millis(p.p95_ms), Millis(p.p99_ms)}) {
        row.push_back(std::move(cell));
      }
      table.Add(std::move(row));
    }
  }
  return any ? table.Print() : "";
}

std::string ScalingTable(const RunReport& run) {
  TextTable table;
  table.AddColumns("at [s]|open [lanes]|starting|advised|violations [%]|idle [%]");
  const ScalingPoint* before = nullptr;
  for (const ScalingPoint& point : run.scaling) {
    const bool same = before != nullptr && before->open == point.open &&
                      before->starting == point.starting && before->advised == point.advised;
    before = &point;
    if (same) continue;
    table.Add({fmt::format("{:.4g}", point.at_s), fmt::format("{}", point.open),
               fmt::format("{}", point.starting), fmt::format("{}", point.advised),
               point.requests > 0 ? Percent(point.bad_ratio) : "-",
               point.requests > 0 ? Percent(point.idle_ratio) : "-"});
  }
  if (before == nullptr) return "";
  return fmt::format("lanes over time, {:.2f} open on average\n{}", MeanOpenLanes(run),
                     table.Print());
}

std::string LayoutTable(const RunReport& run) {
  if (run.layout.empty()) return "";
  TextTable table;
  table.AddColumns("until [s]|offered [r/s]|in use [devices]|lanes|plans|violations [%]");
  for (const LayoutPoint& point : run.layout) {
    table.Add({fmt::format("{:.4g}", point.at_s), fmt::format("{:.1f}", point.offered_rps),
               fmt::format("{:.2f}", point.devices_used), fmt::format("{}", point.lanes),
               fmt::format("{}", point.plans), Percent(point.bad_ratio)});
  }
  return "devices in use over time\n" + table.Print();
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
