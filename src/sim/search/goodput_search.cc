#include "sim/search/goodput_search.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tactus {
namespace {

// Student's t for 97.5 % by degrees of freedom, from 1; beyond the table the normal's 1.96 is
// within 2 %.
constexpr std::array kStudent = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                 2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                 2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                 2.060,  2.056, 2.052, 2.048, 2.045, 2.042};

class Search {
 public:
  Search(const BadRatios& bad_ratios, const GoodputSearchOptions& options)
      : bad_ratios_(bad_ratios), options_(options) {}

  Expected<GoodputPeak> Run() {
    double rate = std::max(options_.start_rps, options_.least_rps);
    double step = options_.first_step;
    for (int i = 0; i <= options_.most_doublings && !Bracketed(); ++i) {
      if (auto tried = Try(rate); !tried) return std::unexpected(tried.error());
      if (peak_.rate_rps == 0 && rate <= options_.least_rps) break;
      rate = peak_.failed_rps == 0 ? step * rate : std::max(rate / step, options_.least_rps);
      step = std::min(2.0, step * step);
    }
    while (Bracketed() && peak_.failed_rps - peak_.rate_rps > options_.precision * peak_.rate_rps) {
      const auto tried = Try((peak_.rate_rps + peak_.failed_rps) / 2);
      if (!tried) return std::unexpected(tried.error());
    }
    return std::move(peak_);
  }

 private:
  bool Bracketed() const { return peak_.rate_rps > 0 && peak_.failed_rps > 0; }

  Status Try(double rate) {
    const auto ratios = bad_ratios_(rate);
    if (!ratios && ratios.error().code == ErrorCode::kResourceExhausted) {
      Refused(rate, ratios.error().message);
      return {};
    }
    if (!ratios) return std::unexpected(ratios.error());
    if (ratios->empty()) return InvalidArgument("a goodput search needs a model");
    GoodputProbe& probe = peak_.probes.emplace_back();
    probe.rate_rps = rate;
    std::size_t unseen = ratios->size();
    for (std::size_t i = 0; i < ratios->size(); ++i) {
      const double ratio = (*ratios)[i];
      if (std::isnan(ratio)) {
        unseen = std::min(unseen, i);
      } else if (ratio > probe.worst) {
        probe.worst = ratio;
        probe.worst_model = i;
      }
    }
    const bool in_limit = probe.worst <= options_.bad_limit;
    probe.judged = !in_limit || unseen == ratios->size();
    if (!probe.judged) probe.worst_model = unseen;
    probe.passed = in_limit && probe.judged;
    if (probe.passed) {
      peak_.rate_rps = rate;
    } else {
      peak_.failed_rps = rate;
      peak_.limiting_model = probe.worst_model;
      peak_.refused.clear();
    }
    return {};
  }

  void Refused(double rate, const std::string& why) {
    peak_.probes.push_back({.rate_rps = rate, .judged = false, .refused = why});
    peak_.failed_rps = rate;
    peak_.refused = why;
  }

  const BadRatios& bad_ratios_;
  const GoodputSearchOptions& options_;
  GoodputPeak peak_;
};

}  // namespace

Expected<GoodputPeak> FindPeak(const BadRatios& bad_ratios, const GoodputSearchOptions& options) {
  if (!(options.start_rps > 0) || !std::isfinite(options.start_rps)) {
    return InvalidArgument("a goodput search starts at a rate above 0");
  }
  if (!(options.bad_limit >= 0 && options.bad_limit < 1)) {
    return InvalidArgument("the violation ratio's limit lies in [0, 1)");
  }
  if (!(options.precision > 0)) return InvalidArgument("a search's precision is above 0");
  if (!(options.first_step > 1 && options.first_step <= 2)) {
    return InvalidArgument("a search's first step lies in (1, 2]");
  }
  return Search(bad_ratios, options).Run();
}

const GoodputProbe* BestProbe(const GoodputPeak& peak) {
  const GoodputProbe* best = nullptr;
  for (const GoodputProbe& probe : peak.probes) {
    if (probe.judged && (best == nullptr || probe.worst < best->worst)) best = &probe;
  }
  return best;
}

ConfidentMean MeanWithConfidence(std::span<const double> values) {
  if (values.empty()) return {};
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  const double mean = sum / n;
  if (values.size() == 1) return {mean, 0};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / (n - 1));
  const std::size_t freedom = values.size() - 1;
  const double t = freedom <= kStudent.size() ? kStudent[freedom - 1] : 1.96;
  return {mean, t * deviation / std::sqrt(n)};
}

}  // namespace tactus
