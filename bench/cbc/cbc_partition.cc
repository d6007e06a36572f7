#include "cbc/cbc_partition.h"

#include <memory>
#include <vector>

#include <coin/Cbc_C_Interface.h>
#include <fmt/format.h>

namespace tactus {
namespace {

struct Delete {
  void operator()(Cbc_Model* model) const { Cbc_deleteModel(model); }
};

// Columns: x_ij (Eq. 9), then Delta R and Delta S over their averages, then each sub-cluster's
// largest dynamic memory. Rates and memory are shares of the averages, so that the solver's
// tolerances mean the same for all.
class Program {
 public:
  explicit Program(const PartitionProblem& problem)
      : problem_(problem),
        l_(problem.sub_clusters),
        m_(static_cast<int>(problem.models.size())),
        cbc_(Cbc_newModel()),
        rate_(AverageOf(problem, &PartitionModel::rate_rps)),
        memory_(AverageOf(problem, &PartitionModel::static_mb)) {
    AddColumns();
    for (int i = 0; i < m_; ++i) AddPlaceOf(i);
    for (int j = 0; j < l_; ++j) {
      AddGap(j, &PartitionModel::rate_rps, rate_, RateGap());
      AddGap(j, &PartitionModel::static_mb, memory_, RateGap() + 1);
      AddLimits(j);
    }
    AddCost();
  }

  Cbc_Model* get() { return cbc_.get(); }

  Partition Read() const {
    const double* solution = Cbc_bestSolution(cbc_.get());
    Partition partition(problem_.models.size());
    for (int i = 0; i < m_; ++i) {
      for (int j = 0; j < l_; ++j) {
        if (solution[Place(i, j)] > 0.5) partition[static_cast<std::size_t>(i)] = j;
      }
    }
    return partition;
  }

 private:
  int Place(int i, int j) const { return i * l_ + j; }
  int RateGap() const { return m_ * l_; }
  int Dynamic(int j) const { return RateGap() + 2 + j; }
  const PartitionModel& ModelAt(int i) const {
    return problem_.models[static_cast<std::size_t>(i)];
  }

  void AddColumns() {
    for (int i = 0; i < m_ * l_; ++i) Column(0, 1, true);
    Column(1, kNoLimit, false);
    Column(problem_.memory_weight, kNoLimit, false);
    for (int j = 0; j < l_; ++j) Column(0, kNoLimit, false);
    Cbc_setObjSense(cbc_.get(), 1);  // Eq. 3
  }
  void Column(double price, double most, bool whole) {
    Cbc_addCol(cbc_.get(), "", 0, most, price, whole ? 1 : 0, 0, nullptr, nullptr);
  }
  void Row(const std::vector<int>& columns, const std::vector<double>& factors, char sense,
           double bound) {
    Cbc_addRow(cbc_.get(), "", static_cast<int>(columns.size()), columns.data(), factors.data(),
               sense, bound);
  }

  // Eq. 8.
  void AddPlaceOf(int i) {
    std::vector<int> columns;
    for (int j = 0; j < l_; ++j) columns.push_back(Place(i, j));
    Row(columns, std::vector<double>(columns.size(), 1), 'E', 1);
  }
  // Eq. 6 and 7: the sum is within the gap of the average, on both sides.
  void AddGap(int j, double PartitionModel::*key, double average, int gap) {
    std::vector<int> columns;
    std::vector<double> factors;
    double total = 0;
    for (int i = 0; i < m_; ++i) {
      columns.push_back(Place(i, j));
      factors.push_back(ModelAt(i).*key / average);
      total += ModelAt(i).*key / average;
    }
    columns.push_back(gap);
    factors.push_back(-1);
    Row(columns, factors, 'L', total / l_);
    factors.back() = 1;
    Row(columns, factors, 'G', total / l_);
  }
  // Eq. 4 and 5.
  void AddLimits(int j) {
    std::vector<int> columns;
    std::vector<double> rates;
    std::vector<double> memory;
    for (int i = 0; i < m_; ++i) {
      columns.push_back(Place(i, j));
      rates.push_back(ModelAt(i).rate_rps / rate_);
      memory.push_back(ModelAt(i).static_mb / memory_);
    }
    if (problem_.most_rate_rps < kNoLimit) {
      Row(columns, rates, 'L', problem_.most_rate_rps / rate_);
    }
    if (problem_.most_memory_mb == kNoLimit) return;
    for (int i = 0; i < m_; ++i) {
      Row({Place(i, j), Dynamic(j)}, {ModelAt(i).dynamic_mb / memory_, -1}, 'L', 0);
    }
    columns.push_back(Dynamic(j));
    memory.push_back(1);
    Row(columns, memory, 'L', problem_.most_memory_mb / memory_);
  }
  // Eq. 10: what is not at home any more.
  void AddCost() {
    if (problem_.previous.empty() || problem_.most_cost == kNoLimit) return;
    std::vector<int> columns;
    std::vector<double> factors;
    double all = 0;
    for (int i = 0; i < m_; ++i) {
      const int home = problem_.previous[static_cast<std::size_t>(i)];
      if (home == kNowhere) continue;
      columns.push_back(Place(i, home));
      factors.push_back(ModelAt(i).move_cost);
      all += ModelAt(i).move_cost;
    }
    if (!columns.empty()) Row(columns, factors, 'G', all - problem_.most_cost);
  }

  const PartitionProblem& problem_;
  const int l_;
  const int m_;
  std::unique_ptr<Cbc_Model, Delete> cbc_;
  const double rate_;
  const double memory_;
};

}  // namespace

Expected<CbcPartition> SolvePartitionByCbc(const PartitionProblem& problem, double seconds) {
  if (auto valid = Validate(problem); !valid) return std::unexpected(valid.error());
  Program program(problem);
  Cbc_setLogLevel(program.get(), 0);
  Cbc_setParameter(program.get(), "ratioGap", "0");
  Cbc_setParameter(program.get(), "allowableGap", "1e-9");
  Cbc_setParameter(program.get(), "timeMode", "elapsed");  // by itself it counts processor time
  Cbc_setMaximumSeconds(program.get(), seconds);
  Cbc_solve(program.get());
  if (Cbc_isProvenInfeasible(program.get()) != 0) {
    return Fail(ErrorCode::kResourceExhausted,
                fmt::format("CBC proved that no partition of {} models onto {} sub-clusters keeps "
                            "the limits; more sub-clusters or memory may help",
                            problem.models.size(), problem.sub_clusters));
  }
  if (Cbc_numberSavedSolutions(program.get()) == 0 || Cbc_bestSolution(program.get()) == nullptr) {
    return Fail(ErrorCode::kDeadlineExceeded,
                fmt::format("CBC found no partition in {:.4g} s; more time, or the local search, "
                            "may help",
                            seconds));
  }
  CbcPartition result{.optimal = Cbc_isProvenOptimal(program.get()) != 0};
  result.found.partition = program.Read();
  result.found.score = ScoreOf(problem, result.found.partition);
  return result;
}

}  // namespace tactus
