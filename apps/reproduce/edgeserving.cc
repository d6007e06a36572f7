// EdgeServing, Figures 4 to 11.

#include <algorithm>

#include <fmt/format.h>

#include "reproduce/figure.h"

namespace tactus {
namespace {

// The loads of the paper and one past them, in requests per second of ResNet152, the least loaded.
const std::vector<double> kLoads = {20, 60, 100, 140, 180, 220, 240, 280};
constexpr double kRatio321 = 6;  // 3 : 2 : 1
constexpr double kEqual = 3;
const char* const kLoadLabel = "requests/s of ResNet152 (of 6 in all)";
const char* const kEqualLabel = "requests/s of each model";

FigurePanel P95Panel(const char* x_label, double slo, double y_max) {
  return {"load", "p95_ms", x_label, "P95 latency (ms)", slo, "SLO", y_max, false};
}
FigurePanel BadPanel(const char* x_label, double y_max) {
  return {"load", "bad_percent", x_label, "SLO violations (%)", 1, "1 %", y_max, false};
}
FigurePanel AccuracyPanel(const char* x_label) {
  return {"load", "accuracy_percent", x_label, "accuracy (%)", 0, "", 85, true};
}

// A point for each load; `rps_per_load`: all models together for each request of the load.
FigureSeries AtLoads(const std::string& label, const std::string& scenario,
                     const std::vector<std::string>& settings, const std::vector<double>& loads,
                     double rps_per_load) {
  FigureSeries series{label, {}};
  for (const double load : loads) {
    FigurePoint& point = series.points.emplace_back();
    point.x = load;
    point.scenario = scenario;
    point.settings = settings;
    point.settings.push_back(fmt::format("rate_rps={}", load * rps_per_load));
  }
  return series;
}

FigureSeries Policy(const char* label, const char* scenario, const char* policy) {
  return AtLoads(label, scenario, {std::string("policy=") + policy}, kLoads, kRatio321);
}

double Most(const std::map<double, FigureRow>& rows, const char* column, double to_load = 1e9) {
  double most = 0;
  for (const auto& [load, row] : rows) {
    if (load <= to_load) most = std::max(most, row.at(column));
  }
  return most;
}
double Value(const FigureData& data, const char* series, double load, const char* column) {
  return data.at(series).at(load).at(column);
}
std::string Percent(double value) { return fmt::format("{:.2f} %", value); }
std::string Ms(double value) { return fmt::format("{:.1f} ms", value); }

// The first load at which a series violates at least `percent`; 0 where none does.
double FirstLoadAt(const std::map<double, FigureRow>& rows, double percent) {
  for (const auto& [load, row] : rows) {
    if (row.at("bad_percent") >= percent) return load;
  }
  return 0;
}

std::vector<Claim> Figure4Claims(const FigureData& data) {
  const auto& ours = data.at("EdgeServing");
  const double broken = FirstLoadAt(data.at("All-Final"), 15);
  const double most = Most(ours, "bad_percent");
  const double at_240 = Value(data, "EdgeServing", 240, "p95_ms");
  const double early = Value(data, "All-Early", 140, "p95_ms");
  const double early_accuracy = Value(data, "All-Early", 140, "accuracy_percent");
  return {
      {"All-Final reaches 15 % violations within the tested loads",
       "15.19 % (load lost in the text)",
       broken > 0 ? fmt::format("{} at load {:g}",
                                Percent(Value(data, "All-Final", broken, "bad_percent")), broken)
                  : "never",
       broken > 0},
      {"EdgeServing violates less than 1 % at every load", "< 1 %", Percent(most), most < 1},
      {"EdgeServing's P95 stays under the SLO of 50 ms at load 240", "44 to 46 ms", Ms(at_240),
       at_240 <= 50},
      {"All-Early answers within a few ms (load 140)", "P95 2 to 3 ms", Ms(early), early < 5},
      {"All-Early is not accurate", "7.4 %", Percent(early_accuracy), early_accuracy < 8},
  };
}

std::vector<Claim> Figure5Claims(const FigureData& data) {
  const double low = Value(data, "EdgeServing", 20, "final");
  const double high = Value(data, "EdgeServing", 240, "final");
  return {{"mostly the final exit at the lightest load", "mostly", Percent(100 * low), low > 0.9},
          {"shallower exits at load 240", "gradually shallower",
           fmt::format("final {} there", Percent(100 * high)), high < low - 0.1}};
}

std::vector<Claim> Figure6Claims(const FigureData& data) {
  const auto at = [&](double load) {
    return fmt::format("{} at {}", Percent(Value(data, "EdgeServing", load, "accuracy_percent")),
                       Ms(Value(data, "EdgeServing", load, "p95_ms")));
  };
  const auto near = [&](double load, double accuracy) {
    return std::abs(Value(data, "EdgeServing", load, "accuracy_percent") - accuracy) < 5;
  };
  return {{"accuracy and P95 at the lightest load", "76.75 % at 27.47 ms", at(20), near(20, 76.75)},
          {"in the middle (load lost in the text; ours at 140)", "72.64 % at 40.24 ms", at(140),
           near(140, 72.64)},
          {"at the highest load (ours at 240)", "60.38 % at 44.46 ms", at(240), near(240, 60.38)}};
}

std::vector<Claim> Figure7Claims(const FigureData& data) {
  const double third = Most(data.at("layer3+final"), "bad_percent", 240);
  const double third_p95 = Most(data.at("layer3+final"), "p95_ms", 240);
  const double first_p95 = Most(data.at("layer1+final"), "p95_ms", 240);
  const double all = Most(data.at("all exits"), "bad_percent", 240);
  const double first = Most(data.at("layer1+final"), "bad_percent", 240);
  return {{"layer3+final breaks down at high load", "P95 over 60 ms",
           fmt::format("{}, {}", Ms(third_p95), Percent(third)), third_p95 > 60},
          {"layer1+final keeps P95 under 50 ms up to load 240", "< 50 ms", Ms(first_p95),
           first_p95 < 50},
          {"all exits are about as good as layer1+final (violations)", "comparable",
           fmt::format("{} and {}", Percent(all), Percent(first)), std::abs(all - first) < 1}};
}

std::vector<Claim> Figure8Claims(const FigureData& data) {
  std::vector<Claim> claims;
  for (const int slo : {20, 30, 40, 50, 60, 70}) {
    const auto& rows = data.at(fmt::format("SLO {} ms", slo));
    const double p95 = Most(rows, "p95_ms", 140);
    claims.push_back({fmt::format("SLO {} ms: P95 within it up to load 140", slo),
                      slo == 20 ? "about 19 ms at high load" : "below the SLO",
                      fmt::format("{} (at 240: {})", Ms(p95), Ms(rows.at(240).at("p95_ms"))),
                      p95 <= slo});
  }
  return claims;
}

std::vector<Claim> Figure9Claims(const FigureData& data) {
  const double light = Most(data.at("3 x R50"), "bad_percent", 240);
  const double mixed = Most(data.at("R50 + R101 + R152"), "bad_percent", 240);
  const double light_p95 = Most(data.at("3 x R50"), "p95_ms", 240);
  const double heavy_p95 = Most(data.at("3 x R152"), "p95_ms", 240);
  return {{"3 x ResNet50: hardly a violation", "near zero", Percent(light), light < 0.5},
          {"one of each: violations below 0.5 %", "< 0.5 %, P95 31 to 42 ms",
           fmt::format("{}, P95 to {}", Percent(mixed),
                       Ms(Most(data.at("R50 + R101 + R152"), "p95_ms", 240))),
           mixed < 0.5},
          {"3 x ResNet50 has less P95 than 3 x ResNet152", "the lowest of all",
           fmt::format("{} and {}", Ms(light_p95), Ms(heavy_p95)), light_p95 < heavy_p95}};
}

std::vector<Claim> Figure10Claims(const FigureData& data) {
  const auto ends = [&](const char* series) {
    const auto& rows = data.at(series);
    return std::pair(rows.begin()->second.at("accuracy_percent"),
                     rows.rbegin()->second.at("accuracy_percent"));
  };
  const auto falls = [&](const char* series, const char* paper) {
    const auto [low, high] = ends(series);
    return Claim{fmt::format("{}: deep at low load, shallow at high load", series), paper,
                 fmt::format("{} to {}", Percent(low), Percent(high)), high < low - 5};
  };
  return {falls("RTX 3080", "77 % to 55 %"), falls("GTX 1650", "to 9 % at its highest load"),
          falls("Jetson Orin Nano", "75 % to 20 %")};
}

std::vector<Claim> Figure11Claims(const FigureData& data) {
  const double ours = Most(data.at("EdgeServing"), "bad_percent");
  const double edf = Most(data.at("Early-Exit+EDF"), "bad_percent");
  const double lqf = Most(data.at("Early-Exit+LQF"), "bad_percent");
  const double final = Most(data.at("All-Final+Deadline-Aware"), "bad_percent");
  const double single = Most(data.at("Ours+bs=1"), "bad_percent");
  return {
      {"the full scheduler stays below 1 %", "< 1 %", Percent(ours), ours < 1},
      {"Early-Exit+EDF violates more than it", "1.89 % at a high load", Percent(edf), edf > ours},
      {"Early-Exit+LQF violates more than Early-Exit+EDF", "2.99 % at that load", Percent(lqf),
       lqf > edf},
      {"without early exits it breaks down", "explodes", Percent(final), final > 15},
      {"without batching it violates more", "higher at all loads", Percent(single), single > ours}};
}

std::vector<FigureSeries> Settings(
    const char* scenario, const std::vector<std::pair<std::string, std::string>>& variants) {
  std::vector<FigureSeries> series;
  for (const auto& [label, setting] : variants) {
    std::vector<std::string> settings;
    if (!setting.empty()) settings.push_back(setting);
    series.push_back(AtLoads(label, scenario, settings, kLoads, kRatio321));
  }
  return series;
}

Figure Figure9() {
  Figure figure{"9", "Model combinations, equal traffic (Section VI-F)", {}, {}, Figure9Claims};
  for (const auto& [label, file] : {std::pair{"3 x R50", "3xr50"},
                                    {"3 x R101", "3xr101"},
                                    {"3 x R152", "3xr152"},
                                    {"R50 + R101 + R152", "mixed"},
                                    {"2 x R50 + R152", "2xr50-r152"},
                                    {"R50 + 2 x R152", "r50-2xr152"}}) {
    figure.series.push_back(AtLoads(label, std::string("fig09-") + file, {}, kLoads, kEqual));
  }
  figure.panels = {P95Panel(kEqualLabel, 50, 60), BadPanel(kEqualLabel, 3)};
  return figure;
}

Figure Figure10() {
  Figure figure{
      "10", "Platforms, each a stand-in of its own (Section VI-G)", {}, {}, Figure10Claims};
  figure.series = {
      AtLoads("RTX 3080", "fig10-rtx3080", {}, kLoads, kRatio321),
      AtLoads("GTX 1650", "fig10-gtx1650", {}, {5, 20, 40, 60, 80, 100}, kRatio321),
      AtLoads("Jetson Orin Nano", "fig10-orin-nano", {}, {5, 10, 20, 30, 40, 60}, kRatio321)};
  figure.panels = {{"p95_ms", "accuracy_percent", "P95 latency (ms)", "accuracy (%)", 0, "", 85},
                   {"load", "accuracy_percent", kLoadLabel, "accuracy (%)", 0, "", 85, true}};
  return figure;
}

std::vector<Figure> EdgeServingFigures() {
  std::vector<Figure> figures;
  figures.push_back(
      {"4",
       "Schedulers by load (Section VI-B)",
       {Policy("EdgeServing", "fig04", "edgeserving"), Policy("All-Final", "fig04", "all-final"),
        Policy("All-Early", "fig04", "all-early"),
        Policy("Symphony on one lane", "fig04", "symphony")},
       {P95Panel(kLoadLabel, 50, 150), BadPanel(kLoadLabel, 20), AccuracyPanel(kLoadLabel)},
       Figure4Claims});
  figures.push_back({"5",
                     "Exits by load (Section VI-B)",
                     {Policy("EdgeServing", "fig05", "edgeserving")},
                     {},
                     Figure5Claims});
  figures.push_back({"6",
                     "Accuracy against latency as the load rises (Section VI-C)",
                     {Policy("EdgeServing", "fig06", "edgeserving"),
                      Policy("Early-Exit+EDF", "fig06", "early-exit-edf")},
                     {{"p95_ms", "accuracy_percent", "P95 latency (ms)", "accuracy (%)", 0, "", 85},
                      AccuracyPanel(kLoadLabel)},
                     Figure6Claims});
  figures.push_back(
      {"7",
       "Sets of exits (Section VI-D)",
       Settings("fig07", {{"layer1+final", "models.*.exits=layer1+final"},
                          {"layer2+final", "models.*.exits=layer2+final"},
                          {"layer3+final", "models.*.exits=layer3+final"},
                          {"all exits", ""}}),
       {P95Panel(kLoadLabel, 50, 150), BadPanel(kLoadLabel, 20), AccuracyPanel(kLoadLabel)},
       Figure7Claims});
  std::vector<std::pair<std::string, std::string>> slos;
  for (const int slo : {20, 30, 40, 50, 60, 70}) {
    slos.emplace_back(fmt::format("SLO {} ms", slo), fmt::format("models.*.slo_ms={}", slo));
  }
  figures.push_back(
      {"8",
       "SLO thresholds (Section VI-E)",
       Settings("fig08", slos),
       {P95Panel(kLoadLabel, 0, 80), BadPanel(kLoadLabel, 3), AccuracyPanel(kLoadLabel)},
       Figure8Claims});
  figures.push_back(Figure9());
  figures.push_back(Figure10());
  figures.push_back(
      {"11",
       "Ablation (Section VI-H)",
       {Policy("EdgeServing", "fig11", "edgeserving"),
        Policy("Early-Exit+LQF", "fig11", "early-exit-lqf"),
        Policy("Early-Exit+EDF", "fig11", "early-exit-edf"),
        Policy("All-Final+Deadline-Aware", "fig11", "all-final-deadline-aware"),
        Policy("Ours+bs=1", "fig11", "edgeserving:batch=1")},
       {P95Panel(kLoadLabel, 50, 150), BadPanel(kLoadLabel, 20), AccuracyPanel(kLoadLabel)},
       Figure11Claims});
  return figures;
}

}  // namespace

Paper EdgeServingPaper() {
  Paper paper;
  paper.key = "edgeserving";
  paper.title = "EdgeServing";
  paper.basis = "a STAND-IN profile (the paper's table is unpublished)";
  paper.columns = {"offered_rps", "goodput_rps", "bad_percent",      "p50_ms",
                   "p95_ms",      "p99_ms",      "accuracy_percent", "accuracy_limit_percent",
                   "mean_batch",  "layer1",      "layer2",           "layer3",
                   "final"};
  paper.figures = EdgeServingFigures();
  return paper;
}

}  // namespace tactus
