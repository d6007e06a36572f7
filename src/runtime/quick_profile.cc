#include "runtime/quick_profile.h"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tactus {
namespace {

constexpr int kRuns = 4;                       // of each cell, after one to warm up
constexpr Duration kLongEnough = Millis(200);  // a cell that took this long is not run again

class OneResult final : public Completions {
 public:
  void Done(BatchId, BatchResult&& result) noexcept override {
    const std::lock_guard lock(mutex_);
    result_ = std::move(result);
    done_.notify_all();
  }
  BatchResult Take() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return result_.has_value(); });
    return *std::move(result_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  std::optional<BatchResult> result_;
};

// One row of zeros for each input.
struct ZeroRow {
  std::vector<Shape> shapes;
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorView> views;
};

Expected<Shape> RowShape(const ModelSpec& spec, const TensorSpec& input) {
  Shape shape = input.dims;
  const std::size_t first = spec.max_batch > 0 ? 1 : 0;
  if (first == 1 && !shape.empty()) shape[0] = 1;
  const auto given = spec.parameters.find("profile_shape." + input.name);
  if (given != spec.parameters.end()) {
    const char* at = given->second.data();
    const char* const end = at + given->second.size();
    for (std::size_t i = first; i < shape.size(); ++i) {
      const auto [next, bad] = std::from_chars(at, end, shape[i]);
      if (bad != std::errc() || (next != end && *next != ',')) {
        return InvalidArgument(fmt::format("model '{}': parameter '{}' is not {} numbers by comma",
                                           spec.name, given->first, shape.size() - first));
      }
      at = next == end ? end : next + 1;
    }
  }
  for (std::int64_t& dim : shape) dim = std::max<std::int64_t>(dim, 1);
  return shape;
}

Expected<ZeroRow> MakeZeroRow(const ModelSpec& spec) {
  ZeroRow row;
  for (const TensorSpec& input : spec.inputs) {
    Expected<Shape> shape = RowShape(spec, input);
    if (!shape) return std::unexpected(shape.error());
    const auto elements = ElementCount(*shape);
    if (!elements) return InvalidArgument(fmt::format("input '{}' is too large", input.name));
    // A BYTES element of length zero is four zero bytes.
    const std::size_t each = std::max<std::size_t>(ElementSize(input.type), 1);
    const std::size_t size = input.type == DataType::kBytes ? 4 : each;
    row.shapes.push_back(*std::move(shape));
    row.bytes.emplace_back(static_cast<std::size_t>(*elements) * size);
  }
  for (std::size_t i = 0; i < row.bytes.size(); ++i) {
    row.views.push_back({row.bytes[i].data(), row.bytes[i].size(), row.shapes[i]});
  }
  return row;
}

Expected<Duration> Measure(Engine& engine, ModelHandle handle, const ZeroRow& row, ExitId exit,
                           int batch, const WallClock& clock, std::uint64_t& next_batch) {
  const std::vector<RowInputs> rows(static_cast<std::size_t>(batch), RowInputs{row.views, nullptr});
  Duration worst{};
  for (int run = 0; run <= kRuns; ++run) {
    OneResult result;
    const TimePoint before = clock.Now();
    engine.Submit(handle, {BatchId{next_batch++}, ModelId{}, exit, rows}, result);
    const BatchResult got = result.Take();
    const Duration took = clock.Now() - before;
    if (!got.status) return std::unexpected(got.status.error());
    if (run > 0 || took >= kLongEnough) worst = std::max(worst, took);
    if (took >= kLongEnough) break;
  }
  return worst;
}

// Fills the batches between measured ones on a straight line, and lets no latency shrink.
void Interpolate(std::vector<Duration>& cells, const std::vector<int>& measured) {
  for (std::size_t i = 1; i < measured.size(); ++i) {
    const int low = measured[i - 1];
    const int high = measured[i];
    Duration& end = cells[high - 1];
    const Duration start = cells[low - 1];
    end = std::max(end, start);
    for (int b = low + 1; b < high; ++b)
      cells[b - 1] = start + (end - start) * (b - low) / (high - low);
  }
}

}  // namespace

Expected<ProfileTable::ModelRows> QuickProfile(Engine& engine, ModelHandle handle,
                                               const ModelSpec& spec, int max_batch,
                                               const WallClock& clock, BatchId first) {
  std::uint64_t next_batch = first.value();
  const Expected<ZeroRow> row = MakeZeroRow(spec);
  if (!row) return std::unexpected(row.error());
  std::vector<int> batches;
  for (int b = 1; b < max_batch; b *= 2) batches.push_back(b);
  batches.push_back(max_batch);
  ProfileTable::ModelRows rows;
  rows.exits = static_cast<int>(spec.exits.size());
  rows.max_batch = max_batch;
  for (int e = 0; e < rows.exits; ++e) {
    std::vector<Duration> cells(static_cast<std::size_t>(max_batch));
    for (const int b : batches) {
      const ExitId exit{static_cast<ExitId::rep>(e)};
      const Expected<Duration> took = Measure(engine, handle, *row, exit, b, clock, next_batch);
      if (!took) {
        return Internal(fmt::format(
            "model '{}' has no profile and its quick measurement failed (exit {}, batch {}): {}; "
            "state 'profile_shape.<input>' in its parameters or profile it with `tactus profile`",
            spec.name, spec.exits[static_cast<std::size_t>(e)].name, b, took.error().message));
      }
      cells[static_cast<std::size_t>(b) - 1] = *took;
    }
    Interpolate(cells, batches);
    rows.latency.insert(rows.latency.end(), cells.begin(), cells.end());
  }
  return rows;
}

}  // namespace tactus
