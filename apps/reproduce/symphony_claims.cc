#include "reproduce/symphony_claims.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "reproduce/grid_figure.h"

namespace tactus {
namespace {

using Rows = std::map<double, FigureRow>;

// 0 where a point has no such number: no rate passed, or no lanes were enough.
double At(const FigureData& data, const std::string& series, double x, const char* column) {
  const auto& row = data.at(series).at(x);
  const auto value = row.find(column);
  return value == row.end() ? 0 : value->second;
}

Claim AtLeast(std::string what, std::string paper, double value, double bar) {
  return {std::move(what),
          std::move(paper),
          fmt::format("{:.3f}", value),
          value >= bar,
          std::optional<double>(value),
          fmt::format(">= {:g}", bar)};
}

std::string Times(double ratio) { return fmt::format("{:.2f} x", ratio); }
std::string Of(const std::string& group, const char* system) {
  return fmt::format("{}: {}", group, system);
}

// The smallest x at which the series has reached `percent`: of a distribution by size.
double SizeAt(const Rows& rows, double percent) {
  for (const auto& [x, row] : rows) {
    if (row.at("percent") >= percent) return x;
  }
  return 0;
}

double Least(const Rows& rows, const char* column) {
  double least = 1e300;
  for (const auto& [x, row] : rows) least = std::min(least, row.at(column));
  return least;
}

}  // namespace

std::vector<Claim> Table2Claims(const FigureData& data) {
  std::vector<Claim> claims = {AtLeast("ResNet50: part of the staggered bound", "0.90",
                                       At(data, kOurs, 1, "of_staggered"), 0.93),
                               AtLeast("InceptionResNetV2: part of the staggered bound", "0.855",
                                       At(data, kOurs, 2, "of_staggered"), 0.89)};
  for (const char* system : {kOurs, kPublished}) {
    for (const auto& [x, model] : {std::pair{1.0, "ResNet50"}, {2.0, "InceptionResNetV2"}}) {
      claims.push_back(
          AtLeast(fmt::format("{}, {}: goodput at 1.5 x peak over the peak's", system, model),
                  "flat top", At(data, system, x, "overload"), 0.97));
    }
  }
  for (const auto& [x, model] : {std::pair{1.0, "ResNet50"}, {2.0, "InceptionResNetV2"}}) {
    const double symphony = At(data, kPublished, x, "peak_rps");
    for (const char* rival : {kClockwork, kNexus, kShepherd}) {
      const double peak = At(data, rival, x, "peak_rps");
      const double paper = At(data, kPublished, x, "paper") / At(data, rival, x, "paper");
      claims.push_back({fmt::format("{}: published Symphony carries more than {}", model, rival),
                        Times(paper), Times(symphony / peak), symphony > peak});
    }
  }
  return claims;
}

std::vector<Claim> BatchSizeClaims(const FigureData& data) {
  std::vector<Claim> claims;
  const auto add = [&](const char* model, const char* system, double paper) {
    const double median = SizeAt(data.at(Of(model, system)), 50);
    claims.push_back({fmt::format("{}: median batch of {}", model, system),
                      fmt::format("{:g}", paper), fmt::format("{:g}", median),
                      std::abs(median - paper) <= 0.25 * paper});
  };
  for (const auto& [system, resnet, inception] :
       {std::tuple{kPublished, 14, 8}, std::tuple{kShepherd, 9, 4}, std::tuple{kNexus, 6, 2},
        std::tuple{kClockwork, 1, 1}}) {
    add("ResNet50", system, resnet);
    add("InceptionResNetV2", system, inception);
  }
  return claims;
}

std::vector<Claim> FlatTopClaims(const FigureData& data) {
  std::vector<Claim> claims;
  const auto flat = [&](const char* system) {  // at nearly twice the peak
    return At(data, system, 16000, "goodput_rps") / At(data, system, 10500, "goodput_rps");
  };
  for (const char* system : {kOurs, kPublished}) {
    claims.push_back(
        AtLeast(fmt::format("{}: goodput at 16,000 offered over that at 10,500", system), "stable",
                flat(system), 0.97));
  }
  claims.push_back(
      {"Nexus: stable under overload", "stable", Times(flat(kNexus)), flat(kNexus) >= 0.9});
  claims.push_back({"Clockwork: degrades under overload", "degrades", Times(flat(kClockwork)),
                    flat(kClockwork) < 0.9});
  claims.push_back({"Shepherd: fluctuates under overload", "some fluctuation",
                    Times(flat(kShepherd)), flat(kShepherd) < 1});
  const double busy = At(data, kPublished, 3000, "busy_percent");
  claims.push_back(
      {"GPUs needed at 3,000 requests/s", "20 %", fmt::format("{:.0f} %", busy), busy <= 35});
  for (const char* rival : {kClockwork, kNexus, kShepherd}) {
    const double other = At(data, rival, 3000, "busy_percent");
    claims.push_back({fmt::format("{} keeps all GPUs busy at 3,000 requests/s", rival), "100 %",
                      fmt::format("{:.0f} %", other), other >= 90});
  }
  for (const auto& [load, lanes] : {std::pair{1000, 7}, {3000, 11}, {6000, 18}, {9000, 24}}) {
    const double touched = At(data, kPublished, load, "lanes_touched");
    claims.push_back({fmt::format("GPUs touched at {} requests/s", load),
                      fmt::format("{} (one run of the authors' algorithm)", lanes),
                      fmt::format("{:.1f}", touched), std::abs(touched - lanes) <= 2});
  }
  return claims;
}

std::vector<Claim> CaseStudyClaims(const FigureData& data) {
  const std::string group = "by batching effect";
  const auto ratio = [&](double beta) {  // the better of both ways to gather
    const double eager = std::max(At(data, Of(group, kEager), beta, "peak_rps"),
                                  At(data, Of(group, "eager (window)"), beta, "peak_rps"));
    return eager / At(data, Of(group, kPublished), beta, "peak_rps");
  };
  std::vector<Claim> claims = {
      {"beta / alpha = 1: eager is as good as deferred", "nearly the same", Times(ratio(1)),
       ratio(1) > 0.9},
      {"the stronger the batching, the further eager falls behind", "lower",
       fmt::format("{} at 15", Times(ratio(15))), ratio(15) < ratio(1) - 0.05}};
  for (const auto& [name, paper, like] :
       {std::tuple{"one ResNet50", "reaches the same goodput", true},
        std::tuple{"A100 zoo", "much lower", false}}) {
    double best = 0;
    for (const char* gather : {"timeout", "timeout (window)"}) {
      for (const auto& [share, row] : data.at(Of(name, gather))) {
        best = std::max(best, row.contains("peak_rps") ? row.at("peak_rps") : 0);
      }
    }
    const double part = best / At(data, Of(name, kPublished), 0, "peak_rps");
    claims.push_back({fmt::format("{}: the best timeout against deferred", name), paper,
                      Times(part), like ? part > 0.95 : part < 0.95});
  }
  return claims;
}

std::vector<Claim> GridClaims(const FigureData& data) {
  const auto& like = data.at(Of("all workloads", kLikeForLike));
  const auto share_above = [](const Rows& rows, double ratio) {
    double below = 0;
    for (const auto& [percent, row] : rows) {
      if (row.at("ratio") <= ratio) below = percent;
    }
    return 100 - below;
  };
  const auto percent = [](double share) { return fmt::format("{:.1f} %", share); };
  const double no_worse = share_above(like, 0.95);
  const double half_more = share_above(like, 1.5);
  const double doubled = share_above(like, 2);
  std::vector<Claim> claims = {
      {"deferred is no worse than 0.95 of eager", "almost all", percent(no_worse), no_worse > 90},
      {"deferred carries half as much again or more", "16 %", percent(half_more), half_more > 8},
      {"deferred carries more than twice as much", "in extreme cases", percent(doubled),
       doubled > 0}};
  const double best = share_above(data.at(Of("all workloads", kOursBest)), 0.95);
  claims.push_back({"ours is no worse than 0.95 of the better of both eager ways", "not compared",
                    percent(best), best > 90});
  const auto span = [&](const std::string& prefix) {
    double low = 1e300;
    double high = 0;
    for (const auto& [series, rows] : data) {
      if (!series.starts_with(prefix)) continue;
      for (const auto& [x, row] : rows) {
        low = std::min(low, row.at("ratio"));
        high = std::max(high, row.at("ratio"));
      }
    }
    return std::pair(low, high);
  };
  const auto add = [&](const char* what, const char* prefix, const char* paper, double least,
                       double most) {
    const auto [low, high] = span(prefix);
    if (high == 0) return;  // a sample without such workloads
    claims.push_back(
        {what, paper, fmt::format("{:.2f} to {:.2f} x", low, high), low >= least && high >= most});
  };
  add("mixed zoo: deferred over eager (window)", "mixed", "1.35 to 2.02 x", 1.2, 1.35);
  add("DenseNet121 at 30 ms, medians", "DenseNet121: SLO 30", "1.34 to 3.34 x", 1, 1.34);
  add("DenseNet121 at 50 ms, medians", "DenseNet121: SLO 50", "less prominent", 0.9, 1);
  add("BERT, medians", "BERT", "similar", 0.9, 0.95);
  return claims;
}

std::vector<Claim> ZooClaims(const FigureData& data) {
  std::vector<Claim> claims;
  const char* const zoos[] = {"1080Ti mixed", "1080Ti strong", "1080Ti weak",
                              "A100 mixed",   "A100 strong",   "A100 weak"};
  const char* const paper[] = {"2.0 to 2.4 x", "3.5 x", "1.23 x",
                               "2.0 to 2.4 x", "5.7 x", "1.10 x"};
  for (int i = 0; i < 6; ++i) {
    const double x = i + 1;
    claims.push_back(AtLeast(fmt::format("{}: part of the fluid limit", zoos[i]), "not stated",
                             At(data, kOurs, x, "of_fluid"), 0.95));
    claims.push_back(AtLeast(fmt::format("{}: goodput at 1.5 x peak over the peak's", zoos[i]),
                             "flat top", At(data, kOurs, x, "overload"), 0.97));
    double rival = 0;
    for (const char* name : {kClockwork, kNexus, kShepherd}) {
      rival = std::max(rival, At(data, name, x, "peak_rps"));
    }
    const double ratio = At(data, kOurs, x, "peak_rps") / rival;
    claims.push_back({fmt::format("{}: over the best of Clockwork, Nexus and Shepherd", zoos[i]),
                      paper[i], Times(ratio), ratio > 1});
  }
  double most = 0;
  double least = 1;
  for (int x = 1; x <= 6; ++x) {
    const double loss = 1 - At(data, kNexus8, x, "peak_rps") / At(data, kNexus, x, "peak_rps");
    most = std::max(most, loss);
    least = std::min(least, loss);
  }
  claims.push_back({"Nexus loses goodput with 8 front ends", "11 to 45 %",
                    fmt::format("{:.0f} to {:.0f} %", 100 * least, 100 * most), most >= 0.11});
  return claims;
}

std::vector<Claim> LeastLanesClaims(const FigureData& data) {
  std::vector<Claim> claims;
  const auto lanes = [&](const char* system, double x) { return At(data, system, x, "lanes"); };
  const auto text = [](double count) {
    return count > 0 ? fmt::format("{:g}", count) : std::string("over 256");
  };
  for (const auto& [rival, single, mixed] :
       {std::tuple{kNexus, "2 to 6 more", "2.66 x"}, std::tuple{kShepherd, "2 to 6 more", "1.90 x"},
        std::tuple{kClockwork, "more than 2 x", "not at all: its cost"},
        std::tuple{kCostlyClockwork, "more than 2 x", "not at all"}}) {
    for (const auto& [x, name, paper] :
         {std::tuple{1.0, "ResNet50", single}, std::tuple{2.0, "37 models", mixed}}) {
      const double theirs = lanes(rival, x);
      const double ours = lanes(kOurs, x);
      claims.push_back({fmt::format("{}: {} needs more GPUs than Symphony", name, rival), paper,
                        fmt::format("{} against {}", text(theirs), text(ours)),
                        ours > 0 && (theirs == 0 || theirs > ours)});
    }
  }
  return claims;
}

std::vector<Claim> CharacteristicsClaims(const FigureData& data) {
  std::vector<Claim> claims;
  const auto gain = [&](const std::string& group, double slo) {
    double rival = 0;
    for (const char* name : {kClockwork, kNexus, kShepherd}) {
      rival = std::max(rival, At(data, Of(group, name), slo, "peak_rps"));
    }
    return At(data, Of(group, kOurs), slo, "peak_rps") / std::max(rival, 1.0);
  };
  for (const char* group : {"equal poisson", "equal gamma", "zipf poisson", "zipf gamma"}) {
    const double tight = gain(group, 20);
    const double loose = gain(group, 100);
    claims.push_back(
        {fmt::format("{}: more gain over the best rival at 20 ms than at 100 ms", group),
         "significant; less prominent", fmt::format("{} and {}", Times(tight), Times(loose)),
         tight >= loose && tight > 1});
  }
  const double poisson = At(data, "equal poisson: Nexus", 50, "peak_rps") /
                         At(data, Of("equal poisson", kOurs), 50, "peak_rps");
  const double gamma = At(data, "equal gamma: Nexus", 50, "peak_rps") /
                       At(data, Of("equal gamma", kOurs), 50, "peak_rps");
  claims.push_back({"Nexus, of Symphony at 50 ms: worse where arrivals are bursty", "worse",
                    fmt::format("{} with Poisson, {} with Gamma", Times(poisson), Times(gamma)),
                    gamma < poisson});
  return claims;
}

std::vector<Claim> QueueingClaims(const FigureData& data) {
  std::vector<Claim> claims;
  for (const char* model : {"ResNet50", "InceptionResNetV2"}) {
    const auto median = [&](const char* system) {
      return At(data, Of(model, system), 50, "delay_ms");
    };
    for (const char* rival : {kNexus, kClockwork}) {
      const double ratio = median(rival) / median(kPublished);
      claims.push_back({fmt::format("{}: {} waits longer than Symphony (medians)", model, rival),
                        "2 to 3 x", Times(ratio), ratio >= 1.1});
    }
    const double slo = std::string(model) == "ResNet50" ? 25 : 70;
    const double longest = At(data, Of(model, kNexus), 99, "delay_ms") / slo;
    claims.push_back({fmt::format("{}: Nexus's P99 delay over the SLO", model),
                      "longest about half", fmt::format("{:.2f}", longest),
                      longest > 0.35 && longest < 0.65});
  }
  return claims;
}

std::vector<Claim> ScalingClaims(const FigureData& data) {
  const auto growth = [&](const char* system) {  // from 8 to 128 lanes, over 16
    return At(data, system, 128, "peak_rps") / At(data, system, 8, "peak_rps") / 16;
  };
  return {AtLeast("goodput per GPU on 128 over that on 8", "linear", growth(kOurs), 0.97),
          {"Clockwork, paying 0.5 us a candidate, does not scale", "limited by its locks",
           Times(growth(kCostlyClockwork)), growth(kCostlyClockwork) < 0.5}};
}

std::vector<Claim> NetworkClaims(const FigureData& data) {
  const auto kept = [&](const char* group, int slo, double from, double to) {
    const std::string series = fmt::format("{}: SLO {} ms", group, slo);
    return At(data, series, to, "peak_rps") / At(data, series, from, "peak_rps");
  };
  double least = 1;
  for (const int slo : {20, 25, 50, 100}) least = std::min(least, kept("RDMA", slo, 0, 33));
  const double tight = kept("TCP", 20, 0, 3034);
  const double loose = kept("TCP", 100, 0, 3034);
  return {{"RDMA's tail (33 us) costs little at any SLO", "marginal", Times(least), least > 0.97},
          {"delays within TCP's tail cost much (12 ms at an SLO of 20 ms)", "up to 70 % lost",
           fmt::format("{:.0f} % lost", 100 * (1 - kept("TCP", 20, 0, 12000))),
           kept("TCP", 20, 0, 12000) < 0.5},
          {"the tighter the SLO the worse (at 3 ms: 20 ms, 100 ms)", "more severe",
           fmt::format("{} and {} kept", Times(tight), Times(loose)), tight < loose}};
}

std::vector<Claim> TimelineClaims(const FigureData& data) {
  const auto bad = [&](const char* series) {
    double offered = 0;
    double good = 0;
    for (const auto& [at, row] : data.at(series)) {
      offered += row.at("offered_rps");
      good += row.at("goodput_rps");
    }
    return 100 * (1 - good / offered);
  };
  const auto span = [&](const char* series, const char* column) {
    double most = 0;
    for (const auto& [at, row] : data.at(series)) most = std::max(most, row.at(column));
    return std::pair(Least(data.at(series), column), most);
  };
  const auto [least_busy, most_busy] = span(kAllThere, "busy_lanes");
  const auto [least_open, most_open] = span(kFollowed, "open_lanes");
  return {
      {"bad requests with 512 GPUs, which are enough", "low while not overloaded",
       fmt::format("{:.3f} %", bad(kAllThere)), bad(kAllThere) < 1},
      {"GPUs in use follow the load", "consolidated",
       fmt::format("{:.0f} to {:.0f} of 512", least_busy, most_busy),
       most_busy > 1.5 * least_busy && most_busy < 512},
      {"GPUs come and go where the advice is followed", "not tried",
       fmt::format("{:.0f} to {:.0f} there, {:.1f} % bad", least_open, most_open, bad(kFollowed)),
       most_open > 1.2 * least_open}};
}

}  // namespace tactus
