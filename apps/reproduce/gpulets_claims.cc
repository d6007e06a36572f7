#include "reproduce/gpulets_claims.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "reproduce/gpulets_answers.h"

namespace tactus {
namespace {

constexpr double kLoads = 1023;
// Instead of the paper's number, of gpulet+int.
constexpr const char* kStricter = "- (ours, stricter than as published)";

// The paper's number, or what one of ours is held against where the paper says nothing of it.
std::string Bar(const std::string& paper, const std::string& bar) {
  return paper.starts_with('-') ? paper + "; bar: " + bar : paper;
}

double At(const FigureData& data, const std::string& series, double x, const char* column) {
  return data.at(series).at(x).at(column);
}
double Schedulable(const FigureData& data, const char* planner, double x = 1) {
  return At(data, planner, x, "schedulable");
}

// Over the mixes: the planner's largest rate over the other one's.
std::vector<double> Ratios(const FigureData& data, const char* planner, const char* over) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < kGpuletMixes.size(); ++i) {
    const double x = static_cast<double>(i + 1);
    ratios.push_back(At(data, planner, x, "rate_rps") / At(data, over, x, "rate_rps"));
  }
  return ratios;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::string Listed(const std::vector<double>& values, const char* unit) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += fmt::format("{}{} {:.1f}", i == 0 ? "" : "; ", kGpuletMixes[i], values[i]);
  }
  return text + unit;
}

Claim Gain(const FigureData& data, const char* planner, const char* over, const char* paper,
           double least) {
  std::vector<double> gains = Ratios(data, planner, over);
  for (double& gain : gains) gain = 100 * (gain - 1);
  return {fmt::format("{} over {}: gain in rate, mean of the five mixes", planner, over),
          Bar(paper, fmt::format("{:.1f} %", least)),
          fmt::format("{:.1f} % ({})", Mean(gains), Listed(gains, " %")), Mean(gains) >= least};
}

Claim OfIdeal(const FigureData& data, const char* planner, const char* ideal, const char* paper,
              double least) {
  std::vector<double> parts = Ratios(data, planner, ideal);
  for (double& part : parts) part *= 100;
  return {fmt::format("{}: rate of {}'s, mean of the five mixes", planner, ideal),
          Bar(paper, fmt::format("{:.1f} %", least)),
          fmt::format("{:.1f} % ({})", Mean(parts), Listed(parts, " %")), Mean(parts) >= least};
}

Claim Missed(const FigureData& data, const char* planner, const char* ideal, const char* paper) {
  const FigureRow& row = data.at(planner).at(1);
  const auto found = row.find("beyond_ideal");
  const double beyond = found == row.end() ? 0 : found->second;
  const double missed = Schedulable(data, ideal) - (Schedulable(data, planner) - beyond);
  std::string ours =
      fmt::format("{:.0f} ({:.1f} % of 1,023): {:.0f} and {:.0f}", missed, 100 * missed / kLoads,
                  Schedulable(data, planner), Schedulable(data, ideal));
  if (beyond > 0) ours += fmt::format("; {:.0f} of its are not {}'s", beyond, ideal);
  return {fmt::format("{}: loads that {} plans for and it does not", planner, ideal),
          std::string(paper) + "; bar: 2 %", ours, missed <= 0.02 * kLoads};
}

// Where more than 1 % is late or dropped, by the mixes' names.
std::string Exceeded(const FigureData& data, const char* planner) {
  std::string mixes;
  for (std::size_t i = 0; i < kGpuletMixes.size(); ++i) {
    if (At(data, planner, static_cast<double>(i + 1), "bad_percent") <= 1) continue;
    mixes += fmt::format("{}{}", mixes.empty() ? "" : ", ", kGpuletMixes[i]);
  }
  return mixes;
}

Claim NoneBeyond(const FigureData& data, const char* ideal) {
  const double beyond = At(data, ideal, 1, "beyond_ideal");
  return {fmt::format("{} plans for every load that another planner does", ideal), "-",
          fmt::format("{:.0f} of another's are not {}'s", beyond, ideal), beyond == 0};
}

}  // namespace

std::vector<Claim> HalvesClaims(const FigureData& data) {
  const double whole = Schedulable(data, kSbp);
  const double halves = Schedulable(data, kSbpHalves);
  return {{"squishy bin packing plans for more loads on even halves than on whole devices", "more",
           fmt::format("{:.0f} against {:.0f}", halves, whole), halves > whole},
          {"squishy bin packing plans for every load on even halves", "all 1,023",
           fmt::format("{:.0f}", halves), halves == kLoads}};
}

std::vector<Claim> SharingClaims(const FigureData& data) {
  // The largest rate up to which all of them lose at most 1 % of either model.
  const auto carries = [&](const char* series) {
    double most = 0;
    for (const auto& [rate_rps, row] : data.at(series)) {
      if (std::max(row.at("lenet_bad_percent"), row.at("vgg_bad_percent")) > 1) break;
      most = rate_rps;
    }
    return most;
  };
  std::vector<Claim> claims;
  for (const char* split : {kSplit20, kSplit40}) {
    for (const char* other : {kTemporalSharing, kUnsplit}) {
      claims.push_back(
          {fmt::format("{} against {}: requests/s of each with at most 1 % late or dropped", split,
                       other),
           "significantly higher",
           fmt::format("{:.0f} against {:.0f}", carries(split), carries(other)),
           carries(split) > carries(other)});
    }
  }
  return claims;
}

std::vector<Claim> OverheadClaims(const FigureData& data) {
  const double p90 = At(data, kOverhead, 90, "overhead_percent");
  const double most = At(data, kOverhead, 100, "overhead_percent");
  return {
      {"90 % of batches lose less than", "18 %",
       fmt::format("{:.1f} % (the device is set so)", p90), p90 <= 18},
      {"the tail is long: some batch loses more than three times as much",
       "severe in certain circumstances", fmt::format("{:.0f} % at most", most), most > 3 * p90}};
}

// A knee that is one: a share beyond it brings less a percent.
std::vector<Claim> KneeClaims(const FigureData& data) {
  std::vector<Claim> claims;
  for (const char* model : kGpuletModels) {
    const auto& curve = data.at(fmt::format("{}: affordable", model));
    const auto knee =
        std::ranges::find_if(curve, [](const auto& at) { return at.second.at("is_knee") > 0; });
    const double there = knee->second.at("rate_rps") / knee->first;
    const double whole = curve.at(100).at("rate_rps") / 100;
    claims.push_back(
        {fmt::format("{}: the whole device affords at least 10 % less for each percent of it than "
                     "the knee",
                     model),
         "less (the bar of 10 % is ours)",
         fmt::format("{:.1f} requests/s a percent at the knee of {:.0f} %, {:.1f} of the whole "
                     "device ({:+.0f} %)",
                     there, knee->first, whole, 100 * (whole / there - 1)),
         whole <= 0.9 * there});
  }
  return claims;
}

std::vector<Claim> FitClaims(const FigureData& data) {
  std::vector<Claim> claims;
  for (const auto& [percent, paper] : {std::pair{90.0, 10.26}, {95.0, 13.98}}) {
    const double error = At(data, kHeldOutPairs, percent, "error_percent");
    claims.push_back({fmt::format("error of {:.0f} % of the pairs held out", percent),
                      fmt::format("{} %", paper),
                      fmt::format("{:.2f} % (no model: {:.2f} %; of sides drawn one by one, as "
                                  "for what planners count on: {:.2f} %)",
                                  error, At(data, kNoModel, percent, "error_percent"),
                                  At(data, kHeldOutSides, percent, "error_percent")),
                      error <= paper});
  }
  return claims;
}

std::vector<Claim> MostRateClaims(const FigureData& data) {
  return {Gain(data, kGpulet, kSbp, "106.0 %", 106.0),
          Gain(data, kPublished, kSbp, "102.6 %", 102.6),
          Gain(data, kPublished, kSelfTuning, "74.8 %", 74.8),
          Gain(data, kGpuletInt, kSbp, kStricter, 102.6),
          Gain(data, kGpuletInt, kSelfTuning, kStricter, 74.8),
          Gain(data, kGpuletRetry, kSbp, "- (ours)", 106.0),
          Gain(data, kGpuletRetryInt, kSbp, "- (ours)", 102.6)};
}

std::vector<Claim> RateExponentClaims(const FigureData& data) {
  std::vector<Claim> claims;
  for (const char* planner : {kGpuletInt, kGpuletRetryInt}) {
    bool gains = true;
    double worst = 0;
    std::string listed;
    for (const auto& [exponent, row] : data.at(planner)) {
      gains = gains && row.at("gain_percent") > 0;
      worst = std::max(worst, row.at("bad_percent"));
      listed += fmt::format("{}{:g}: {:+.1f} % and {:.2f} %", listed.empty() ? "" : "; ", exponent,
                            row.at("gain_percent"), row.at("bad_percent"));
    }
    claims.push_back({fmt::format("{}: at every exponent a gain in rate over SBP, and at most 1 % "
                                  "of the worst mix is late or dropped",
                                  planner),
                      "- (latency by share is unpublished)", listed, gains && worst <= 1});
  }
  return claims;
}

std::vector<Claim> ViolationClaims(const FigureData& data) {
  std::vector<Claim> claims;
  const auto bad = [&](const char* planner, double x) {
    return At(data, planner, x, "bad_percent");
  };
  struct Keeps {
    const char* with;
    const char* without;
    const char* paper;
  };
  for (const auto& [with, without, paper] :
       {Keeps{kPublished, kGpulet, "every mix"}, Keeps{kGpuletInt, kGpulet, kStricter},
        Keeps{kGpuletRetryInt, kGpuletRetry, "- (ours)"}}) {
    std::string listed;
    for (std::size_t i = 0; i < kGpuletMixes.size(); ++i) {
      const double x = static_cast<double>(i + 1);
      listed += fmt::format("{}{} {:.2f} (without: {:.2f})", i == 0 ? "" : "; ", kGpuletMixes[i],
                            bad(with, x), bad(without, x));
    }
    claims.push_back({fmt::format("{}: at most 1 % is late or dropped", with), paper, listed + " %",
                      Exceeded(data, with).empty()});
  }
  // Of all five: who loses more everywhere does not do as the paper's does.
  const std::string published = "equal, short-skew";
  for (const auto& [planner, paper] :
       {std::pair{kGpulet, published + "; at most 1 % in the others"},
        std::pair{kGpuletRetry, "- (ours; gpulet: " + published + ")"}}) {
    const std::string ours = Exceeded(data, planner);
    claims.push_back({fmt::format("{}: where more than 1 % is late or dropped", planner), paper,
                      ours.empty() ? "nowhere" : ours, ours == published});
  }
  return claims;
}

std::vector<Claim> FrameClaims(const FigureData& data) {
  std::vector<Claim> claims;
  for (const char* planner : {kGpulet, kPublished, kGpuletInt, kGpuletRetry, kGpuletRetryInt}) {
    double worst = 0;
    std::string listed;
    for (std::size_t i = 0; i < kGpuletApplications; ++i) {
      const FigureRow& row = data.at(planner).at(static_cast<double>(i + 1));
      worst = std::max(worst, row.at("bad_percent"));
      listed += fmt::format("{}{} {:.2f} (its requests by themselves: {:.2f})", i == 0 ? "" : "; ",
                            kGpuletMixes[i], row.at("bad_percent"), row.at("requests_percent"));
    }
    const bool published = planner == std::string(kGpulet) || planner == std::string(kPublished);
    const bool stricter = planner == std::string(kGpuletInt);
    claims.push_back({fmt::format("{}: at most 1 % of frames are late or dropped", planner),
                      published  ? "both applications"
                      : stricter ? kStricter
                                 : "- (ours)",
                      listed + " %", worst <= 1});
  }
  return claims;
}

std::vector<Claim> HeadroomClaims(const FigureData& data) {
  std::vector<Claim> claims;
  for (const char* planner : {kGpuletInt, kGpuletRetryInt}) {
    std::string listed;
    bool holds = false;
    for (const auto& [percent, row] : data.at(planner)) {
      listed += fmt::format("{}{:g} %: {:.2f}", listed.empty() ? "" : "; ", percent,
                            row.at("bad_percent"));
      holds = holds || (percent == 15 && row.at("bad_percent") <= 1);
    }
    claims.push_back({fmt::format("{}: a headroom of 15 % keeps the worst mix below 1 %", planner),
                      "- (ours)", listed, holds});
  }
  return claims;
}

std::vector<Claim> RunLoadClaims(const FigureData& data) {
  std::vector<Claim> claims;
  for (const auto& [without, with] :
       {std::pair{kGpulet, kGpuletInt}, {kGpuletRetry, kGpuletRetryInt}}) {
    const auto over = [&](const char* planner) {
      return std::ranges::count_if(
          data.at(planner), [](const auto& load) { return load.second.at("bad_percent") > 1; });
    };
    double worst = 0;
    for (const auto& [number, row] : data.at(with)) worst = std::max(worst, row.at("bad_percent"));
    claims.push_back(
        {fmt::format("{}: at most 1 % is late or dropped of any load planned for", with),
         "- (ours; of its five mixes: at most 1 %)",
         fmt::format("{} of {} loads lose more, {:.2f} % at most; {}: {} of {}", over(with),
                     data.at(with).size(), worst, without, over(without), data.at(without).size()),
         over(with) == 0});
  }
  return claims;
}

std::vector<Claim> WaveClaims(const FigureData& data) {
  const auto mean = [&](const char* planner, const char* column, const char* weight) {
    double sum = 0;
    double weights = 0;
    for (const auto& [at, row] : data.at(planner)) {
      const double w = weight == nullptr ? 1 : row.at(weight);
      sum += w * row.at(column);
      weights += w;
    }
    return sum / weights;
  };
  const double bad = mean(kGpuletInt, "bad_percent", "offered_rps");
  // Pearson's, of what arrives and what is in use.
  const double load = mean(kGpuletInt, "offered_rps", nullptr);
  const double share = mean(kGpuletInt, "share_percent", nullptr);
  double both = 0;
  double of_load = 0;
  double of_share = 0;
  for (const auto& [at, row] : data.at(kGpuletInt)) {
    const double x = row.at("offered_rps") - load;
    const double y = row.at("share_percent") - share;
    both += x * y;
    of_load += x * x;
    of_share += y * y;
  }
  const double correlation = both / std::sqrt(of_load * of_share);
  return {
      {"late or dropped of all requests", "0.14 %; bar: 0.2 %",
       fmt::format("{:.2f} % ({}: {:.2f} %)", bad, kSbp, mean(kSbp, "bad_percent", "offered_rps")),
       bad <= 0.2},
      {"shares in use follow the load", "yes; bar: a correlation over 0.8",
       fmt::format("correlation {:.2f}; {:.0f} % in use on average ({}: {:.0f} %)", correlation,
                   share, kSbp, mean(kSbp, "share_percent", nullptr)),
       correlation > 0.8}};
}

std::vector<Claim> SchedulableClaims(const FigureData& data) {
  return {Missed(data, kPublished, kIdealInt, "18 (1.8 %)"),
          Missed(data, kGpuletInt, kIdealInt, kStricter),
          Missed(data, kGpuletRetryInt, kIdealInt, "- (ours)"),
          Missed(data, kGpulet, kIdeal, "-"),
          Missed(data, kGpuletRetry, kIdeal, "- (ours)"),
          NoneBeyond(data, kIdeal),
          NoneBeyond(data, kIdealInt)};
}

std::vector<Claim> CheckClaims(const FigureData& data) {
  const auto row = [&](const char* planner) {
    return fmt::format("{}: {:.0f} planned for, {:.0f} of {:.0f} run lose more than 1 %", planner,
                       At(data, planner, 1, "schedulable"), At(data, planner, 1, "missed"),
                       At(data, planner, 1, "run"));
  };
  const double kept = At(data, kGpuletInt, 1, "missed") / At(data, kGpuletInt, 1, "run");
  const double lost = At(data, kPublished, 1, "missed") / At(data, kPublished, 1, "run");
  std::vector<Claim> claims = {
      {"what ours checks beyond the algorithm as published keeps loads that are planned for "
       "from losing more than 1 %",
       "- (ours); bar: 1 % of the loads that are run, and the published one misses more",
       row(kGpuletInt) + "; " + row(kPublished), kept <= 0.01 && lost > kept}};
  for (const char* planner : {kPublished, kGpuletInt, kGpuletRetryInt, kIdealInt}) {
    const double missed = At(data, planner, 1, "bare_missed");
    claims.push_back(
        {fmt::format("{}: at most 1 % is late or dropped of any load, planned for as it arrives",
                     planner),
         "- (ours; of its five mixes: at most 1 %)",
         fmt::format("{:.0f} of {:.0f} loads lose more, {:.1f} % at most", missed,
                     At(data, planner, 1, "schedulable"),
                     At(data, planner, 1, "bare_worst_percent")),
         missed == 0});
  }
  return claims;
}

std::vector<Claim> ExponentClaims(const FigureData& data) {
  std::vector<Claim> claims;
  for (const auto& [exponent, row] : data.at(kIdeal)) {
    const auto count = [&](const char* planner) { return Schedulable(data, planner, exponent); };
    claims.push_back(
        {fmt::format(
             "exponent {}: gpulet plans for more than SBP, on whole devices and on halves, and "
             "than self-tuning, and gpulet-retry for all but 2 % of ideal's",
             exponent),
         "- (latency by share is unpublished)",
         fmt::format("SBP {:.0f}, halves {:.0f}, self-tuning {:.0f}, gpulet {:.0f}, gpulet-retry "
                     "{:.0f}, ideal {:.0f}",
                     count(kSbp), count(kSbpHalves), count(kSelfTuning), count(kGpulet),
                     count(kGpuletRetry), count(kIdeal)),
         count(kGpulet) > std::max({count(kSbp), count(kSbpHalves), count(kSelfTuning)}) &&
             count(kIdeal) - count(kGpuletRetry) <= 0.02 * kLoads});
  }
  return claims;
}

std::vector<Claim> MostRateOfIdealClaims(const FigureData& data) {
  return {OfIdeal(data, kPublished, kIdealInt, "92.3 % (traffic 87.7 %)", 92.3),
          OfIdeal(data, kGpuletInt, kIdealInt, kStricter, 92.3),
          OfIdeal(data, kGpuletRetryInt, kIdealInt, "- (ours)", 92.3),
          OfIdeal(data, kGpulet, kIdeal, "-", 92.3),
          OfIdeal(data, kGpuletRetry, kIdeal, "- (ours)", 92.3)};
}

}  // namespace tactus
