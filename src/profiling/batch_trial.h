// Tries a loaded model: with which sizes of its open dimensions it runs, and whether rows that run
// together give what each gives alone. For model_trial.h, which says what follows of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/engine.h"
#include "profiling/limited_runs.h"
#include "profiling/row_difference.h"
#include "profiling/sample_row.h"

namespace tactus {

// Rows that a trial runs together, at most: no lane runs more.
inline constexpr int kMostTogether = 1024;
inline constexpr double kDeviceSlack = 10;  // devices multiply with fewer bits than the processor

// What became of the trial of a batch.
struct BatchTrial {
  enum class End {
    kHolds,
    kDiffers,    // rows answer otherwise among others
    kMisshapen,  // an output has not one row for each
    kFails,      // rows that ran alone do not run together
    kUntried,    // no row ran alone
    kSilent,     // what the rows gave alone can show nothing
  };
  End end = End::kUntried;
  std::string why;       // unless it holds
  std::size_t rows = 0;  // the most that ran together
  // Draws of rows whose answers may be labels, where there was no time for all; none: there was.
  std::optional<std::size_t> labels;
  // The outputs that are another each time for the same row: "'y', 'z'"; empty: none is. Of these,
  // means and spreads were compared alone.
  std::string chance;
  // The outputs that were the same for all rows, alike: of these nothing is known.
  std::string same;
  bool endless = false;  // a run was ended, for it took too long
};

class Trial {
 public:
  // The batches are numbered from `first` on. Optional inputs are left out but for those `present`.
  // All but the number outlive the trial.
  Trial(Engine& engine, ModelHandle handle, ModelSpec& spec, std::uint64_t first,
        std::span<const std::string> present = {})
      : engine_(engine),
        handle_(handle),
        spec_(spec),
        present_(present),
        next_batch_(first),
        on_device_(engine.traits().device.has_value()),
        waits_(on_device_ || engine.traits().deferred || engine.traits().isolated) {}

  // Leaves in the spec's found_shapes the first sizes with which a row runs alone; false, and none,
  // where no size does. Stops early where an output of one row has not one row: no size mends that.
  bool FindSizes();
  BatchTrial TryBatch();
  // Whether the batch comes out misshapen with every row that was tried.
  bool AlwaysMisshapen();

  // Why the last row that failed did not run.
  const std::string& failure() const { return failure_; }
  // The shapes that one row has given last, by output; empty: none has run.
  const std::vector<Shape>& gave() const { return gave_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kLongest{1};  // beyond the few runs that a trial needs
  static constexpr std::chrono::seconds kLongestNeeded{5};  // of these, but for the first
  using Rows = std::vector<SampleRow>;
  using Shapes = std::map<std::string, Shape>;
  using Outputs = std::vector<std::shared_ptr<const BatchOutput>>;  // by exit
  struct OutputOfExit {
    double size = 0;
    bool chance = false;    // the same row gives another answer each time
    bool numbers = false;   // in a round, it had some
    bool none = false;      // in a round, it had not one that is finite
    bool fraction = false;  // in a round, one was no whole number
    bool alike = false;     // in a round, unlike rows had the same
    bool varied = false;    // in a round, they had not
  };

  BatchResult Run(std::span<const RowInputs> rows, std::size_t exit = 0);
  Expected<SampleRow> Make(SampleDraw draw) const;
  // Whether a size of a row is open, of inputs that the rows have.
  bool HasOpenInput() const;
  bool TryShapes(Shapes shapes);
  Shapes ShapesOf(std::int64_t first, std::int64_t size) const;
  bool NextSize();
  // Rows unlike each other that all run alone, and what they give, by row and exit.
  bool DrawRows(std::size_t round);
  bool DrawRows(std::size_t round, int integers);
  // Those that differ most from each other, of those that run.
  bool DrawLoudRows();
  // What the rows that ran alone are worth, by exit and output.
  void Weigh();
  // The rows that ran alone, in all orders; of the first rows also as many as will serve together.
  bool TryOrders(bool first);
  // Runs the rows in this order; false: the trial has ended. What it gave, by exit, in `together_`.
  bool TryOrder(std::span<const std::size_t> order);
  // The rows of this order, which has just run, with another at its end and then with another in
  // front: what stayed in its place gives the same. False: the trial has ended.
  bool TryNeighbours(std::span<const std::size_t> order);
  // Three rows, and so on up to all of `rows_`. False: the trial has ended.
  bool TryFew();
  // Rows that have some of their numbers in common. False: the trial has ended.
  bool TryShared();
  // Draws `alike` rows that are like each other, and one that is unlike them.
  bool DrawShared(std::size_t round, std::size_t alike);
  // Many more rows beside different neighbours, alone, in other places and among fewer, where
  // answers may be labels. False: the trial has ended.
  bool TryLabels();
  // Draws `neighbours` rows, the last of them loud, and a quiet one.
  bool DrawNear(std::size_t round, std::size_t neighbours, bool large);
  // Rows that were compared with themselves elsewhere, and those that were another there.
  struct Moved {
    std::size_t compared = 0;
    std::size_t rows = 0;
    double Share() const { return static_cast<double>(rows) / static_cast<double>(compared); }
  };
  void CountMoved(std::span<const std::size_t> order, const Outputs& before,
                  std::span<const std::size_t> elsewhere, Moved& moved);
  // Whether an output may be one of few answers, whatever its type: whole numbers, text, or numbers
  // that unlike rows have in common.
  bool MayBeLabels(const OutputOfExit& output, DataType type) const;
  // As many rows as will serve together, or as a second allows; `of_known`: what those of `rows_`
  // took together. False: the trial has ended.
  bool TryWhole(Clock::duration of_known);
  // Other numbers of rows. False: the trial has ended.
  bool TryCounts();
  // Outputs of chance: whether a row's are spread among others as they are alone or among different
  // ones. False: the trial has ended.
  bool TryChance();
  // What the row gave in runs of a batch in this order, as numbers.
  std::vector<std::vector<double>> RunsOf(std::size_t row, std::span<const std::size_t> order,
                                          std::span<const Outputs> runs, std::size_t exit,
                                          std::size_t output) const;
  bool SpreadAlike(const std::vector<std::vector<double>>& a,
                   const std::vector<std::vector<double>>& b, std::size_t exit,
                   std::size_t output) const;
  // What each exit gives for the rows in this order; nothing where one does not run.
  std::optional<Outputs> RunTogether(std::span<const std::size_t> order);
  // Whether the rows in `places` are the same, to the bit nearly, in `before`, which `order` has
  // given, and in `together_`. False: the trial has ended.
  bool Unmoved(std::span<const std::size_t> order, const Outputs& before,
               std::span<const std::size_t> places);
  // The largest difference between two batches of `rows`, in these places; 0: there is none.
  double Apart(const BatchOutput& before, const BatchOutput& now, std::size_t rows,
               std::span<const std::size_t> places, std::size_t output) const;
  // Whether the row gives another answer each time, alone.
  bool Wavers(std::size_t row, std::size_t exit, std::size_t output);
  bool CompareRow(const BatchOutput& batch, std::size_t place, std::size_t rows, std::size_t row,
                  std::size_t exit);
  RowDifference DifferenceOf(const BatchOutput& batch, std::size_t place, std::size_t rows,
                             std::size_t row, std::size_t exit, std::size_t output) const;
  bool AllOfChance() const;
  std::string NamesOfChance() const;  // as BatchTrial::chance
  std::string NamesOfSame() const;    // as BatchTrial::same
  std::string NamesWhere(bool (*holds)(const OutputOfExit&), bool at_all_exits) const;
  // Completes what TryBatch gives.
  void Tell();
  // This thread's processor time where the engine runs on it: what else a machine does decides
  // nothing.
  Clock::time_point Now() const;
  bool TimeIsUp() const;
  bool Late() const { return enough_ && TimeIsUp(); }
  bool End(BatchTrial::End end, std::string why) {
    ended_ = {end, std::move(why)};
    return false;
  }
  // An assumed batch is none from the first difference on. Of a declared one, which stays, the
  // largest is looked for.
  bool Differ() {
    differs_ = true;
    return spec_.batch_origin == BatchOrigin::kDeclared || End(BatchTrial::End::kDiffers, "");
  }

  Engine& engine_;
  const ModelHandle handle_;
  ModelSpec& spec_;
  const std::span<const std::string> present_;
  LimitedRuns runs_;
  std::uint64_t next_batch_;
  const bool on_device_;
  const bool waits_;  // for what runs elsewhere
  const Clock::time_point begin_ = Now();
  std::size_t size_ = 0;         // the next of kSizes to be tried
  std::optional<Shapes> empty_;  // the first that ran and gave nothing
  std::string failure_;
  std::vector<Shape> gave_;
  bool misshapen_ = false;  // it ran, and had not one row
  bool enough_ = false;     // the least has run
  bool few_ = false;        // this round, a few numbers differed
  bool endless_ = false;    // a run took too long
  bool differs_ = false;
  double largest_ = 0;
  std::string unlike_;  // the outputs of chance that are spread otherwise among others
  std::size_t most_together_ = 0;
  bool short_of_shared_ = false;       // too little time for rows that share numbers
  std::optional<std::size_t> labels_;  // draws of labels, where time was up
  double slack_ = 1;
  Rows rows_;
  std::vector<Outputs> alone_;
  Outputs together_;
  std::vector<std::vector<OutputOfExit>> outputs_;  // by exit
  bool varied_ = false;                             // unlike rows have given unlike numbers
  BatchTrial ended_;
};

}  // namespace tactus
