#include "reproduce/strait_claims.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace tactus {
namespace {

constexpr const char* kHigh = "high_bad_percent";
constexpr const char* kLow = "low_bad_percent";

double At(const FigureData& data, const std::string& series, double x, const char* column) {
  return data.at(series).at(x).at(column);
}
std::string Percent(double value) { return fmt::format("{:.2f} %", value); }

// The best of the rivals at x, and what it loses.
std::pair<const char*, double> Best(const FigureData& data, const std::string& group, double x,
                                    const char* column) {
  std::pair<const char*, double> best = {kTemporal, 100};
  for (const char* rival : kStraitRivals) {
    const double value = At(data, group + rival, x, column);
    if (value < best.second) best = {rival, value};
  }
  return best;
}

// A tie is not fewer, even where nothing could be fewer: a rival that loses nothing either.
Claim Fewest(const std::string& where, double ours, const std::pair<const char*, double>& best) {
  return {fmt::format("{}: fewer high-priority violations than every rival", where),
          "1.02 to 11.18 points fewer",
          fmt::format("{}{} against {} ({})", ours == best.second ? "tied: " : "", Percent(ours),
                      Percent(best.second), best.first),
          ours < best.second};
}
Claim NearBest(const std::string& where, double ours, const std::pair<const char*, double>& best) {
  return {fmt::format("{}: low-priority violations at most 1 point over the best rival's", where),
          "0.61 points more at worst",
          fmt::format("{} against {} ({})", Percent(ours), Percent(best.second), best.first),
          ours <= best.second + 1};
}

double Most(const std::map<double, FigureRow>& rows, const char* column) {
  double most = 0;
  for (const auto& [x, row] : rows) {
    if (row.contains(column)) most = std::max(most, row.at(column));
  }
  return most;
}

// Over [from, to) of x.
double Mean(const std::map<double, FigureRow>& rows, const char* column, double from, double to) {
  double sum = 0;
  int count = 0;
  for (auto it = rows.lower_bound(from); it != rows.end() && it->first < to; ++it) {
    sum += it->second.at(column);
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

}  // namespace

std::vector<Claim> RequestLevelClaims(const FigureData& data) {
  std::vector<Claim> claims;
  double most = 0;
  double least = 100;
  for (std::size_t i = 0; i < kStraitWorkloads.size(); ++i) {
    const double x = static_cast<double>(i + 1);
    const auto best = Best(data, "", x, kHigh);
    const double ours = At(data, kStrait, x, kHigh);
    claims.push_back(Fewest(kStraitWorkloads[i], ours, best));
    claims.push_back(
        NearBest(kStraitWorkloads[i], At(data, kStrait, x, kLow), Best(data, "", x, kLow)));
    most = std::max(most, best.second - ours);
    least = std::min(least, best.second - ours);
  }
  claims.push_back({"high priority: points fewer than the best rival, least and most",
                    "1.02 and 11.18", fmt::format("{:.2f} and {:.2f}", least, most),
                    least >= 1.02});
  const auto tail = [&](const char* series) { return At(data, series, 1, "high_p95_ms"); };
  claims.push_back({"high: temporal sharing answers high priority sooner than spatial sharing does",
                    "lower and tighter latencies",
                    fmt::format("P95 {:.1f} ms against {:.1f} ms", tail(kTemporal), tail(kStatic)),
                    tail(kTemporal) < tail(kStatic)});
  return claims;
}

std::vector<Claim> LoadClaims(const FigureData& data) {
  std::vector<Claim> claims;
  for (const char* workload : kStraitWorkloads) {
    const std::string group = std::string(workload) + ": ";
    double worst_high = -100;
    double worst_low = -100;
    double at_high = 0;
    double at_low = 0;
    for (const auto& [load, row] : data.at(group + kStrait)) {
      const double high = row.at(kHigh) - Best(data, group, load, kHigh).second;
      const double low = row.at(kLow) - Best(data, group, load, kLow).second;
      if (high > worst_high) at_high = load;
      if (low > worst_low) at_low = load;
      worst_high = std::max(worst_high, high);
      worst_low = std::max(worst_low, low);
    }
    claims.push_back(
        {group + "at every load no rival loses fewer of high priority", "not stated by load",
         fmt::format("worst {:+.2f} points, at {:g}/s", worst_high, at_high), worst_high <= 0});
    claims.push_back(
        {group + "at every load at most 1 point more of low priority", "not stated by load",
         fmt::format("worst {:+.2f} points, at {:g}/s", worst_low, at_low), worst_low <= 1});
  }
  return claims;
}

std::vector<Claim> KernelLevelClaims(const FigureData& data) {
  std::vector<Claim> claims;
  for (const char* workload : {"high", "low"}) {
    const std::string group = std::string("pressure on ") + workload + ": ";
    const auto lost = [&](const char* system, const char* column) {
      return At(data, group + system, 0, column);
    };
    const auto text = [&](const char* column) {
      return fmt::format("{} against {}", Percent(lost(kStrait, column)),
                         Percent(lost(kXSched, column)));
    };
    claims.push_back({group + "high-priority violations as few as XSched's, to a point",
                      "comparable", text(kHigh), lost(kStrait, kHigh) <= lost(kXSched, kHigh) + 1});
    claims.push_back({group + "fewer low-priority violations than XSched", "fewer", text(kLow),
                      lost(kStrait, kLow) < lost(kXSched, kLow)});
  }
  return claims;
}

std::vector<Claim> ErrorClaims(const FigureData& data) {
  const auto worst = [&](double percent, const char* column) {
    double most = 0;
    for (const char* workload : kStraitWorkloads) {
      most = std::max(most, At(data, workload, percent, column));
    }
    return most;
  };
  std::vector<Claim> claims;
  for (const auto& [what, column, paper95, paper99] :
       {std::tuple{"kernels", "kernel_error_percent", 29.6, 46.6},
        std::tuple{"whole latency", "latency_error_percent", 18.95, 27.9}}) {
    const double p50 = worst(50, column);
    const double p95 = worst(95, column);
    const double p99 = worst(99, column);
    claims.push_back(
        {fmt::format("{}: prediction error no larger at P95 and P99 (worst workload)", what),
         fmt::format("{:g} % and {:g} %", paper95, paper99),
         fmt::format("{:.1f} % and {:.1f} % (P50 {:.1f} %)", p95, p99, p50),
         p95 <= paper95 && p99 <= paper99});
  }
  const double p99 = worst(99, "overhead_percent");
  claims.push_back({"what neighbours cost the kernels has a long tail (P99, the most)",
                    "245 %, 682 %",
                    fmt::format("{:.0f} %, {:.0f} %", p99, worst(100, "overhead_percent")),
                    worst(100, "overhead_percent") > 2 * p99});
  return claims;
}

std::vector<Claim> ShiftClaims(const FigureData& data) {
  std::vector<Claim> claims;
  const std::array paper = {"P99 about 3 points", "P95 7 points", "P99 over 7.2 points",
                            "P99 8 points"};
  const std::array percentile = {99.0, 95.0, 99.0, 99.0};
  const std::array bar = {3.0, 7.0, 7.2, 8.0};
  for (std::size_t i = 0; i < kShifts.size(); ++i) {
    const auto at = [&](const char* how, double percent) {
      return At(data, fmt::format("{}: {}", kShifts[i], how), percent, "kernel_error_percent");
    };
    const auto gain = [&](double percent) {
      return at("static", percent) - at("adaptive", percent);
    };
    const double p = percentile[i];
    claims.push_back({fmt::format("{}: adaptive errs less than static at P{:g}", kShifts[i], p),
                      paper[i],
                      fmt::format("{:.1f} points ({:.1f} % against {:.1f} %)", gain(p),
                                  at("adaptive", p), at("static", p)),
                      gain(p) > 0});
    claims.push_back(
        {fmt::format("{}: by as much as in the paper", kShifts[i]), paper[i],
         fmt::format("P50 {:.1f}, P95 {:.1f}, P99 {:.1f} points", gain(50), gain(95), gain(99)),
         gain(p) >= bar[i]});
  }
  return claims;
}

std::vector<Claim> TraceClaims(const FigureData& data) {
  const auto& rows = data.at("trace");
  const double end = rows.rbegin()->first + 1;
  const double part = std::max(1.0, end / 5);
  double off = 0;
  int quiet = 0;
  for (const auto& [at, row] : rows) {
    off = std::max(off, std::abs(row.at("error_p50_percent")));
    quiet += row.at("high_bad_percent") < 1 ? 1 : 0;
  }
  const double met = Mean(rows, "goodput_rps", 0, end) / Mean(rows, "offered_rps", 0, end);
  const auto band = [&](double from, double to) {
    return Mean(rows, "error_p95_percent", from, to) - Mean(rows, "error_p5_percent", from, to);
  };
  const double first = band(0, part);
  const double last = band(end - part, end);
  return {{"goodput follows the load", "generally overlaps",
           fmt::format("{:.2f} % of all requests in time", 100 * met), met > 0.97},
          {"high priority keeps its deadlines, minute by minute (under 1 % lost)", "minor",
           fmt::format("{} of {} minutes; worst {:.2f} %", quiet, rows.size(),
                       Most(rows, "high_bad_percent")),
           static_cast<double>(quiet) >= 0.99 * static_cast<double>(rows.size())},
          {"the median error stays near 0 in every minute", "consistently near 0 %",
           fmt::format("at most {:.1f} %", off), off < 5},
          {"the band of errors (P5 to P95) does not widen: last fifth over first", "steady",
           fmt::format("{:.1f} over {:.1f} points", last, first), last < 1.2 * first}};
}

std::vector<Claim> ThrottleClaims(const FigureData& data) {
  const auto lost = [&](int least, double step, const char* column) {
    return At(data, fmt::format("from {} %", least), step, column);
  };
  constexpr double kStep = 0.25;
  const auto pair = [](double a, double b) {
    return fmt::format("{} and {}", Percent(a), Percent(b));
  };
  return {{"a cap that begins at 25 % costs low priority more than one at 75 %", "severely",
           pair(lost(25, kStep, kLow), lost(75, kStep, kLow)),
           lost(25, kStep, kLow) > lost(75, kStep, kLow)},
          {"and serves high priority better", "appears to",
           pair(lost(25, kStep, kHigh), lost(75, kStep, kHigh)),
           lost(25, kStep, kHigh) < lost(75, kStep, kHigh)},
          {"from 25 %: a quick rise (5 %) helps low priority against a slow one (0.05 %)", "may",
           pair(lost(25, 5, kLow), lost(25, 0.05, kLow)), lost(25, 5, kLow) < lost(25, 0.05, kLow)},
          {"and costs high priority", "risks", pair(lost(25, 5, kHigh), lost(25, 0.05, kHigh)),
           lost(25, 5, kHigh) > lost(25, 0.05, kHigh)}};
}

std::vector<Claim> DriftClaims(const FigureData& data) {
  std::vector<Claim> claims;
  for (const auto& [workload, rows] : data) {
    const double exact = rows.at(0).at("error_p99_percent");
    double moved = 0;
    for (const auto& [drift, row] : rows) {
      if (drift > 15) continue;
      moved = std::max(moved, std::abs(row.at("error_p99_percent") - exact));
    }
    claims.push_back({workload + ": P99 error moves by less than 2 points up to 15 % drift",
                      "below 2 points (text: 1.5), evolving workload",
                      fmt::format("{:.2f} points of {:.1f} %", moved, exact), moved < 2});
  }
  return claims;
}

// The paper takes parts away one after another; each against the step before.
std::vector<Claim> AblationClaims(const FigureData& data) {
  const auto lost = [&](double x, const char* column) { return At(data, kInTurn, x, column); };
  const auto times = [&](double x, const char* column) {
    return lost(x, column) / std::max(lost(x - 1, column), 1e-3);
  };
  const auto both = [&](double x) {
    return fmt::format("high {:.2f} x ({}), low {:.2f} x ({})", times(x, kHigh),
                       Percent(lost(x, kHigh)), times(x, kLow), Percent(lost(x, kLow)));
  };
  return {{"without the order by priority: no noticeable change (half a point)", "none", both(2),
           lost(2, kHigh) - lost(1, kHigh) < 0.5 && lost(2, kLow) - lost(1, kLow) < 0.5},
          {"nor stream priority: more high-priority violations", "a multiple (number lost)",
           both(3), times(3, kHigh) > 1},
          {"nor meet(): more violations of both", "1.35 x high, 1.42 x low", both(4),
           times(4, kHigh) > 1 && times(4, kLow) > 1},
          {"nor violate(): the largest loss of high priority", "18.3 x", both(5),
           times(5, kHigh) > std::max({times(2, kHigh), times(3, kHigh), times(4, kHigh)})},
          {"and a gain of low priority", "substantial", both(5), times(5, kLow) < 1}};
}

}  // namespace tactus
