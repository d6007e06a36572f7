#include "profiling/batch_trial.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "base/rng.h"

namespace tactus {
namespace {

// Sizes of open dimensions, the first that a graph takes is used. Even ones and powers of two suit
// networks that halve, hundreds those that look at pictures, thousands those that listen. 1 is the
// last: padding, pooling and strides refuse it, or make nothing of it.
constexpr std::array<std::int64_t, 12> kSizes{2,   8,   16,   32,   64,    224,
                                              320, 640, 1024, 4096, 16000, 1};
constexpr std::int64_t kOddSize = 7;  // for one round: some graphs mix rows of odd lengths alone
constexpr std::int64_t kMostElements = std::int64_t{1} << 24;  // of an input of a made-up row

struct Round {
  using Noise = SampleDraw::Noise;
  std::array<Noise, 4> noise{};
  // Of the rows that run together. One that is far larger than its neighbours shows what is shared:
  // a scale, a mean, a sum.
  std::array<double, 4> scales{};
  std::array<int, 4> integers{};  // the most; what has no such index is given 9, 1 and zeros
  double slack = 1;               // large numbers magnify rounding
};
constexpr std::array<Round::Noise, 4> All(Round::Noise noise) {
  return {noise, noise, noise, noise};
}
constexpr std::array<Round, 5> kRounds{{
    {.noise = All(Round::Noise::kNormal), .scales = {1, 10, 0.1, 3}, .integers = {9, 9, 9, 9}},
    // Rows with negative numbers beside rows without, and one of zeros: a graph that looks at all
    // of a batch to see which kind it has finds both.
    {.noise = {Round::Noise::kNormal, Round::Noise::kFraction, Round::Noise::kNegative,
               Round::Noise::kNormal},
     .scales = {10, 1, 3, 0},
     .integers = {1, 1, 1, 0}},
    // Logarithms and square roots take no negative numbers, and other functions none above 1. These
    // rows are as like each other as those that a model is measured with.
    {.noise = All(Round::Noise::kFraction), .scales = {1, 1, 1, 1}, .integers = {9, 9, 9, 9}},
    // A way that a graph takes far below zero alone.
    {.noise = All(Round::Noise::kNegative),
     .scales = {1, 300, 30, 100},
     .integers = {9, 9, 9, 9},
     .slack = 10},
    // Pictures of 255 and of 1, of 8 and of 16 bits, real token numbers.
    {.noise = All(Round::Noise::kPositive),
     .scales = {1, 300, 30, 100},
     .integers = {9, 1000, 99, 1000},
     .slack = 10},
}};
constexpr std::size_t kRowsOfLimit = 4;   // more are run only where they are known to be quick
constexpr int kCounts = 2;                // of rows, by chance, beside those that are always tried
constexpr int kRepeats = 3;               // of a row that differs, to see whether it wavers
constexpr double kLeastOfAll = 0.01;      // of the largest row's numbers, where a row's are less
constexpr double kNeighbourSlack = 0.01;  // for the same row, in the same place beside others

// Whether they differ in the first dimension at most.
bool SameTail(const Shape& a, const Shape& b) {
  return a.size() == b.size() &&
         (a.empty() || std::equal(a.begin() + 1, a.end(), b.begin() + 1, b.end()));
}

}  // namespace

Trial::Clock::time_point Trial::Now() const {
  if (waits_) return Clock::now();
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return Clock::time_point(std::chrono::seconds(used.tv_sec) +
                           std::chrono::nanoseconds(used.tv_nsec));
}

bool Trial::TimeIsUp() const { return Now() - begin_ > kLongest; }

// No run follows one that took too long: other rows may not end either.
BatchResult Trial::Run(std::span<const RowInputs> rows, std::size_t exit) {
  if (endless_) return {.status = Fail(ErrorCode::kCancelled, failure_)};
  const ExitId of{static_cast<ExitId::rep>(exit)};
  const auto few = static_cast<int>(std::min<std::size_t>(rows.size(), kRowsOfLimit));
  BatchResult result =
      runs_.Run(engine_, handle_, {BatchId{next_batch_++}, ModelId{}, of, rows}, kLongestRun * few);
  endless_ = !result.status && result.status.error().code == ErrorCode::kCancelled;
  if (result.status && result.output == nullptr) result.status = Internal("there is no output");
  if (!result.status) failure_ = result.status.error().message;
  return result;
}

Expected<SampleRow> Trial::Make(SampleDraw draw) const {
  draw.present = present_;
  return SampleRow::Make(spec_, draw);
}

bool Trial::HasOpenInput() const {
  const std::size_t from = spec_.max_batch > 0 ? 1 : 0;
  return std::ranges::any_of(spec_.inputs, [&](const TensorSpec& input) {
    if (input.optional && std::ranges::find(present_, input.name) == present_.end()) return false;
    const auto inner = std::span(input.dims).subspan(std::min(from, input.dims.size()));
    return std::ranges::any_of(inner, [](auto dim) { return dim < 0; });
  });
}

// The sizes that a graph's names tie together are stated once, by whoever states one of them.
Trial::Shapes Trial::ShapesOf(std::int64_t first, std::int64_t size) const {
  const bool batches = spec_.max_batch > 0;
  std::map<std::string, std::int64_t, std::less<>> named;
  const auto stated = Make({});
  if (stated) {
    const RowInputs row = stated->inputs();
    for (std::size_t i = 0; i < spec_.inputs.size(); ++i) {
      const TensorSpec& input = spec_.inputs[i];
      if (!StatesShape(spec_, input) || row.inputs[i].absent) continue;
      for (std::size_t d = batches ? 1 : 0; d < input.dims.size(); ++d) {
        if (!input.dim_name(d).empty())
          named[std::string(input.dim_name(d))] = row.inputs[i].shape[d];
      }
    }
  }
  Shapes shapes;
  for (const TensorSpec& input : spec_.inputs) {
    if (std::ranges::none_of(input.dims, [](auto dim) { return dim < 0; })) continue;
    Shape shape = input.dims;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] >= 0) continue;
      const auto known = named.find(input.dim_name(d));
      shape[d] = d == 0 && batches            ? 1
                 : known != named.end()       ? known->second
                 : d == 0 && shape.size() > 1 ? first
                                              : size;
    }
    shapes[input.name] = std::move(shape);
  }
  return shapes;
}

bool Trial::TryShapes(Shapes shapes) {
  for (const auto& [name, shape] : shapes) {
    if (ElementCount(shape).value_or(kMostElements) >= kMostElements) return false;
  }
  spec_.found_shapes = std::move(shapes);
  const auto row = Make({});
  if (!row) {
    failure_ = row.error().message;
    return false;
  }
  const RowInputs inputs = row->inputs();
  const BatchResult result = Run({&inputs, 1});
  misshapen_ = result.misshapen;
  if (!result.status) return false;
  gave_.clear();
  for (const auto& tensor : result.output->tensors) gave_.push_back(tensor.shape);
  const auto has_elements = [](const auto& tensor) { return !tensor.data.empty(); };
  if (std::ranges::any_of(result.output->tensors, has_elements)) return true;
  if (!empty_) empty_ = spec_.found_shapes;  // too small for the graph, or it found nothing there
  return false;
}

// From `size_` on.
bool Trial::NextSize() {
  const bool open = HasOpenInput();
  while (size_ < kSizes.size()) {
    const std::int64_t size = kSizes[size_++];
    Shapes shapes = ShapesOf(1, size);
    if (size_ > 1 && shapes == spec_.found_shapes) return false;  // no size makes a difference
    if (TryShapes(std::move(shapes))) return true;
    if (misshapen_ || !open || TimeIsUp()) return false;
  }
  return false;
}

bool Trial::FindSizes() {
  // Shapes that a real call had.
  if (!spec_.found_shapes.empty() && TryShapes(spec_.found_shapes)) return true;
  size_ = 0;
  if (NextSize()) return true;
  const bool open = HasOpenInput();
  for (std::size_t s = 0; !misshapen_ && open && spec_.max_batch == 0 && s < kSizes.size(); ++s) {
    if (TimeIsUp()) break;
    if (TryShapes(ShapesOf(kSizes[s], kSizes[s]))) return true;
  }
  spec_.found_shapes = empty_.value_or(Shapes());
  return empty_.has_value() && !misshapen_;
}

bool Trial::DrawRows(std::size_t round) {
  const int wanted = std::ranges::max(kRounds[round].integers);
  for (const int most : {wanted, 9, 1, 0}) {
    if (most <= wanted && DrawRows(round, most)) return true;
  }
  return false;
}

bool Trial::DrawRows(std::size_t round, int integers) {
  const std::size_t count = static_cast<std::size_t>(std::clamp(spec_.max_batch, 2, 4));
  const Round& plan = kRounds[round];
  rows_.clear();
  alone_.clear();
  for (std::size_t r = 0; r < count; ++r) {
    if (r >= 2 && TimeIsUp()) break;
    auto row = Make({.seed = 100 * (round + 1) + r,
                     .scale = integers > 0 ? plan.scales[r] : 1,
                     .integers = std::min(integers, plan.integers[r]),
                     .noise = plan.noise[r]});
    if (!row) return false;
    const RowInputs inputs = row->inputs();
    std::vector<std::shared_ptr<const BatchOutput>> outputs;
    for (std::size_t e = 0; e < spec_.exits.size(); ++e) {
      BatchResult result = Run({&inputs, 1}, e);
      misshapen_ = result.misshapen;
      if (!result.status) return false;
      outputs.push_back(std::move(result.output));
    }
    rows_.push_back(*std::move(row));
    alone_.push_back(std::move(outputs));
  }
  slack_ = plan.slack * (on_device_ ? kDeviceSlack : 1);
  Weigh();
  return true;
}

bool Trial::DrawLoudRows() { return DrawRows(kRounds.size() - 1) || DrawRows(0); }

void Trial::Weigh() {
  outputs_.resize(spec_.exits.size());
  for (std::size_t e = 0; e < outputs_.size(); ++e) {
    outputs_[e].resize(std::min(spec_.outputs.size(), alone_[0][e]->tensors.size()));
    for (std::size_t t = 0; t < outputs_[e].size(); ++t) {
      std::vector<std::span<const std::byte>> rows;
      for (const auto& outputs : alone_) rows.push_back(outputs[e]->tensors[t].Row(0, 1));
      const RowNumbers numbers = NumbersOf(spec_.outputs[t].type, rows);
      OutputOfExit& output = outputs_[e][t];
      output.size = numbers.size;
      (numbers.no_number ? output.none : output.numbers) = true;
      output.fraction = output.fraction || numbers.fraction;
      for (std::size_t r = 1; r < rows.size(); ++r) {
        output.alike = output.alike || std::ranges::equal(rows[r - 1], rows[r]);
      }
      output.varied = output.varied || numbers.varies;
      varied_ = varied_ || numbers.varies;
    }
  }
}

RowDifference Trial::DifferenceOf(const BatchOutput& batch, std::size_t place, std::size_t rows,
                                  std::size_t row, std::size_t exit, std::size_t output) const {
  const BatchOutput::Tensor& together = batch.tensors[output];
  const BatchOutput::Tensor& alone = alone_[row][exit]->tensors[output];
  if (!SameTail(alone.shape, together.shape)) {
    return {.largest = std::numeric_limits<double>::infinity(), .elements = 1, .beyond = 1};
  }
  const DataType type = spec_.outputs[output].type;
  // Rounding errors are of the row's own size, not of its largest neighbour's; but numbers that
  // cancel out keep the errors of what they were.
  const double all = outputs_[exit][output].size;
  const double size = std::clamp(NumbersOf(type, {alone.Row(0, 1)}).size, kLeastOfAll * all, all);
  return Compare(type, alone.Row(0, 1), together.Row(place, rows), size, slack_);
}

bool Trial::Wavers(std::size_t row, std::size_t exit, std::size_t output) {
  const RowInputs inputs = rows_[row].inputs();
  for (int i = 0; i < kRepeats && (i == 0 || !Late()); ++i) {
    const BatchResult again = Run({&inputs, 1}, exit);
    if (again.status && !DifferenceOf(*again.output, 0, 1, row, exit, output).none()) return true;
  }
  return false;
}

bool Trial::CompareRow(const BatchOutput& batch, std::size_t place, std::size_t rows,
                       std::size_t row, std::size_t exit) {
  bool depends = false;
  for (std::size_t t = 0; t < outputs_[exit].size(); ++t) {
    OutputOfExit& output = outputs_[exit][t];
    if (output.chance) continue;
    const RowDifference difference = DifferenceOf(batch, place, rows, row, exit, t);
    // What differs by itself is no fault of the batch.
    output.chance = !difference.none() && Wavers(row, exit, t);
    if (output.chance) continue;
    largest_ = std::max(largest_, difference.largest);
    few_ = few_ || difference.few();
    depends = depends || !(difference.none() || difference.few());
  }
  return depends ? Differ() : true;
}

bool Trial::TryOrder(std::span<const std::size_t> order) {
  std::vector<RowInputs> rows;
  for (const std::size_t row : order) rows.push_back(rows_[row].inputs());
  together_.clear();
  for (std::size_t e = 0; e < spec_.exits.size(); ++e) {
    const BatchResult result = Run(rows, e);
    if (result.misshapen) return End(BatchTrial::End::kMisshapen, failure_);
    if (!result.status) return End(BatchTrial::End::kFails, failure_);
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (!CompareRow(*result.output, i, order.size(), order[i], e)) return false;
    }
    together_.push_back(result.output);
  }
  most_together_ = std::max(most_together_, order.size());
  return true;
}

// Kernels compute a row in the same way wherever it stands in the same place of as many rows, to
// the bit. So nearly no difference is rounding's, and one that is small here may be large where
// requests are less alike than the rows that are drawn: a mean of all rows with a small weight.
bool Trial::TryNeighbours(std::span<const std::size_t> order) {
  const Outputs before = together_;
  const std::size_t last = order.size() - 1;
  std::vector<std::size_t> places(order.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  for (const std::size_t changed : {last, std::size_t{0}}) {
    std::vector<std::size_t> others(order.begin(), order.end());
    others[changed] = (order[changed] + 1) % rows_.size();
    if (rows_.size() > 2 && others[changed] == order[last - changed]) {
      others[changed] = (others[changed] + 1) % rows_.size();
    }
    if (!TryOrder(others)) return false;
    const auto kept = std::span(places).subspan(changed == 0 ? 1 : 0, last);
    if (!Unmoved(order, before, kept)) return false;
    if (Late()) return true;
  }
  return true;
}

// What depends on a third row only, or on the one before.
bool Trial::TryFew() {
  std::vector<std::size_t> order{0, 1};
  while (order.size() < rows_.size() && !Late()) {
    order.push_back(order.size());
    if (!TryOrder(order)) return false;
    if (!Late() && !TryNeighbours(order)) return false;
  }
  return true;
}

double Trial::Apart(const BatchOutput& before, const BatchOutput& now, std::size_t rows,
                    std::span<const std::size_t> places, std::size_t output) const {
  const double slack = kNeighbourSlack * (on_device_ ? kDeviceSlack * kDeviceSlack : 1);
  const DataType type = spec_.outputs[output].type;
  double largest = 0;
  for (const std::size_t place : places) {
    const auto row = before.tensors[output].Row(place, rows);
    const auto other = now.tensors[output].Row(place, rows);
    if (std::ranges::equal(row, other)) continue;
    const RowDifference difference = Compare(type, row, other, NumbersOf(type, {row}).size, slack);
    if (!difference.none()) largest = std::max(largest, difference.largest);
  }
  return largest;
}

bool Trial::Unmoved(std::span<const std::size_t> order, const Outputs& before,
                    std::span<const std::size_t> places) {
  std::optional<Outputs> again;
  for (std::size_t e = 0; e < before.size(); ++e) {
    for (std::size_t t = 0; t < outputs_[e].size(); ++t) {
      OutputOfExit& output = outputs_[e][t];
      if (output.chance) continue;
      const double apart = Apart(*before[e], *together_[e], order.size(), places, t);
      if (apart == 0) continue;
      if (!again) again = RunTogether(order);
      output.chance = again && Apart(*before[e], *(*again)[e], order.size(), places, t) > 0;
      if (output.chance) continue;
      largest_ = std::max(largest_, apart);
      if (!Differ()) return false;
    }
  }
  return true;
}

// Unlike rows and equal ones, in an order without a period; the first is not the last. Then those
// of one half of the places have other neighbours in the other half.
bool Trial::TryWhole(Clock::duration of_known) {
  const std::size_t known = rows_.size();
  std::size_t most = static_cast<std::size_t>(std::min(spec_.max_batch, kMostTogether));
  const auto left = std::max(begin_ + kLongest - Now(), Clock::duration::zero());
  // Further draws are to have a quarter of what is left.
  if (of_known.count() > 0) {
    most = std::min(most, static_cast<std::size_t>(3 * left / (4 * of_known)) * known);
  }
  if (most <= known) return true;
  Rng rng = Rng::Stream(1, "trial/whole");
  std::vector<std::size_t> order(most);
  std::vector<std::size_t> others(most);
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < most; ++i) {
    const bool last = i + 1 == most;
    order[i] = others[i] = i == 0 ? 0 : last ? 1 : rng.Below(known);
    if (last || (i > 0 && rng.Below(2) == 0)) {
      kept.push_back(i);
    } else {
      others[i] = (order[i] + 1 + rng.Below(known - 1)) % known;
    }
  }
  const auto begin = Now();
  if (!TryOrder(order)) return false;
  const auto end = Now();
  if (end + (end - begin) > begin_ + kLongest) return true;
  const Outputs before = together_;
  return TryOrder(others) && Unmoved(order, before, kept);
}

// A graph may take another way for some number of rows.
bool Trial::TryCounts() {
  const std::size_t known = rows_.size();
  const auto most = static_cast<std::size_t>(std::min(spec_.max_batch, kMostTogether));
  Rng rng = Rng::Stream(1, "trial/counts");
  std::vector<std::size_t> counts{3, 5, 6, 7, 11, 13};
  for (int i = 0; i < kCounts; ++i) counts.push_back(2 + rng.Below(most));
  for (const std::size_t count : counts) {
    if (count >= most || count == known) continue;
    if (Late()) return true;
    std::vector<std::size_t> order(count);
    for (std::size_t& row : order) row = rng.Below(known);
    order.front() = 0;
    order.back() = 1;
    if (!TryOrder(order)) return false;
  }
  return true;
}

std::optional<Trial::Outputs> Trial::RunTogether(std::span<const std::size_t> order) {
  std::vector<RowInputs> rows;
  for (const std::size_t row : order) rows.push_back(rows_[row].inputs());
  Outputs outputs;
  for (std::size_t e = 0; e < spec_.exits.size(); ++e) {
    const BatchResult result = Run(rows, e);
    if (!result.status) return std::nullopt;
    outputs.push_back(result.output);
  }
  return outputs;
}

bool Trial::TryOrders(bool first) {
  const std::size_t n = rows_.size();
  std::vector<std::size_t> all(n);
  std::iota(all.begin(), all.end(), std::size_t{0});
  bool whole = TryOrder(std::array<std::size_t, 2>{0, 1});
  enough_ = true;
  if (whole && !Late()) whole = TryNeighbours(std::array<std::size_t, 2>{0, 1});
  if (whole && !Late()) whole = TryOrder(std::array<std::size_t, 2>{1, 0});
  if (n == 2) return whole;
  if (whole && !Late() && first) whole = TryFew();
  const auto before = Now();
  const bool tried = first && n == static_cast<std::size_t>(spec_.max_batch);
  if (whole && !Late() && !tried) whole = TryOrder(all);
  if (whole && !Late() && first) whole = TryWhole(Now() - before);
  if (whole && !Late() && first) whole = TryCounts();
  if (!whole || most_together_ > n) return whole;
  std::ranges::reverse(all);
  if (!Late()) whole = TryOrder(all);
  // Requests may be equal.
  if (whole && !Late() && first) whole = TryOrder(std::array<std::size_t, 2>{0, 0});
  return whole;
}

BatchTrial Trial::TryBatch() {
  if (!FindSizes()) {
    return {.end = misshapen_ ? BatchTrial::End::kMisshapen
                   : endless_ ? BatchTrial::End::kSilent
                              : BatchTrial::End::kUntried,
            .why = failure_,
            .endless = endless_};
  }
  if (spec_.max_batch < 2) return {BatchTrial::End::kHolds, ""};
  const Shapes found = spec_.found_shapes;
  int rounds = 0;
  int doubtful = 0;
  for (std::size_t round = 0; round < kRounds.size() && !Late(); ++round) {
    // Another size, if there is one; the first that ran stays the model's.
    if (round == 1 && HasOpenInput() && !NextSize()) spec_.found_shapes = found;
    if (round == 2) spec_.found_shapes = found;
    if (round == 3 && HasOpenInput() && !TryShapes(ShapesOf(1, kOddSize))) {
      spec_.found_shapes = found;
    }
    if (round == 4) spec_.found_shapes = found;
    few_ = false;
    misshapen_ = false;
    if (!DrawRows(round)) {
      if (misshapen_) ended_ = {BatchTrial::End::kMisshapen, failure_};
      if (round == 0 && !misshapen_) ended_ = {BatchTrial::End::kUntried, failure_};
      if (misshapen_ || round == 0) break;
      continue;
    }
    if (!TryOrders(round == 0)) break;
    ended_ = {BatchTrial::End::kHolds, ""};
    if (kRounds[round].slack > 1) continue;  // where nobody wonders at near ties that swap
    ++rounds;
    doubtful += few_ ? 1 : 0;
  }
  spec_.found_shapes = found;
  if (ended_.end == BatchTrial::End::kHolds) TryShared();
  if (ended_.end == BatchTrial::End::kHolds && (differs_ || 2 * doubtful > rounds))
    ended_.end = BatchTrial::End::kDiffers;
  if (ended_.end == BatchTrial::End::kHolds && short_of_shared_) {
    ended_ = {BatchTrial::End::kSilent,
              fmt::format("it takes more than {} s to run rows that have numbers in common",
                          kLongestNeeded.count())};
  }
  if (ended_.end == BatchTrial::End::kHolds) TryLabels();
  if (ended_.end == BatchTrial::End::kHolds) TryChance();
  if (endless_ && ended_.end != BatchTrial::End::kMisshapen &&
      ended_.end != BatchTrial::End::kDiffers) {
    ended_ = {BatchTrial::End::kSilent, failure_};
  }
  if (ended_.end == BatchTrial::End::kHolds) {
    bool silent = !varied_;
    for (const auto& outputs : outputs_) {
      for (const OutputOfExit& output : outputs)
        silent = silent || (output.none && !output.numbers);
    }
    if (silent) {
      ended_ = {BatchTrial::End::kSilent,
                varied_ ? "an output has no finite number with any row that was made up"
                        : "all rows that were made up have the same answer, or none is finite"};
    }
  }
  Tell();
  return ended_;
}

void Trial::Tell() {
  if (ended_.end == BatchTrial::End::kDiffers) {
    ended_.why = "answers depend on what else is in the batch";
    if (!unlike_.empty()) {
      ended_.why += fmt::format(": {} differs each time, and its mean or spread with it", unlike_);
    } else {
      ended_.why += std::isfinite(largest_)
                        ? fmt::format(": up to {:.2g}", largest_)
                        : ", also in their shape, their text or whether they are finite numbers";
    }
  }
  ended_.rows = most_together_;
  ended_.endless = endless_;
  ended_.labels = labels_;
  ended_.chance = NamesOfChance();
  ended_.same = NamesOfSame();
}

bool Trial::AlwaysMisshapen() {
  for (const std::size_t rows : {1, 2, 3}) {
    if (rows > static_cast<std::size_t>(spec_.max_batch)) break;
    std::optional<std::string> same;
    bool always = true;
    for (const double scale : {1.0, 0.0, -1.0}) {
      Rows made;
      for (std::size_t r = 0; r < rows && always; ++r) {
        // Noise, zeros, and each in turn.
        const double of_row = scale < 0 ? static_cast<double>(r % 2) : scale;
        auto row = Make({r, of_row, scale == 0 ? 0 : 1});
        if (row) made.push_back(*std::move(row));
      }
      std::vector<RowInputs> inputs;
      for (const SampleRow& row : made) inputs.push_back(row.inputs());
      if (inputs.size() != rows) return false;
      const BatchResult result = Run(inputs);
      always = always && result.misshapen && same.value_or(failure_) == failure_;
      same = failure_;
    }
    if (always) return true;
  }
  return false;
}

}  // namespace tactus
