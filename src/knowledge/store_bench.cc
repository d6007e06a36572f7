// What a second of samples costs to write, and a day of them to roll up. SQLite in a folder of
// the system's temporary ones, or whatever TACTUS_BENCH_STORE names, an empty database of yours:
//   TACTUS_BENCH_STORE=postgresql://me@127.0.0.1/bench tactus_knowledge_bench
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include <benchmark/benchmark.h>

#include "knowledge/store.h"

namespace tactus::knowledge {
namespace {

constexpr UtcTime kBegin =
    std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + std::chrono::hours(12);

// A folder of the bench's own.
class BenchFolder {
 public:
  BenchFolder() {
    std::string made = (std::filesystem::temp_directory_path() / "tactus_bench_XXXXXX").string();
    if (::mkdtemp(made.data())) path_ = made;
  }
  ~BenchFolder() {
    std::error_code left;  // nothing to be done about it
    std::filesystem::remove_all(path_, left);
  }
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;

  std::string place() const {
    const char* said = std::getenv("TACTUS_BENCH_STORE");
    return said ? said : "sqlite:" + (path_ / "bench.db").string();
  }

 private:
  std::filesystem::path path_;
};

// Of so many devices, five samples each.
Batch SecondOf(int devices, UtcTime at) {
  Batch batch{.term = 1};
  constexpr Percentiles kTook{Millis(3), Millis(5), Millis(8)};
  for (int i = 0; i < devices; ++i) {
    const std::string device = "device" + std::to_string(i);
    batch.arrivals.push_back({at, "street", "detect", device, Seconds(1), 15, 1, 5, 900'000, 300});
    batch.batch_latencies.push_back({at, device, "sha256:0123456789abcdef", 0, 4, 250, kTook});
    batch.outcomes.push_back({at, device, "detect", 14, 1, 0, kTook});
    batch.network.push_back({at, device, "rack", 40, Millis(21), 0});
    batch.device_loads.push_back({at, device, 0, 0.8, 1'200, 2.5});
  }
  return batch;
}

void CommitASecond(benchmark::State& state) {
  const BenchFolder folder;
  auto store = OpenStore(folder.place());
  UtcTime at = kBegin;
  for (auto _ : state) {
    at += std::chrono::seconds(1);
    if (!store || !(*store)->Commit(SecondOf(static_cast<int>(state.range(0)), at))) {
      state.SkipWithError(store ? "commit" : store.error().message.c_str());
      break;
    }
  }
  state.SetItemsProcessed(state.iterations() * 5 * state.range(0));
}
BENCHMARK(CommitASecond)->Arg(10)->Arg(1'000)->Unit(benchmark::kMillisecond)->UseRealTime();

// An hour of 100 devices that report every ten seconds: 180,000 rows.
void RollUpAnHour(benchmark::State& state) {
  const BenchFolder folder;
  auto store = OpenStore(folder.place());
  UtcTime at = kBegin + std::chrono::days(10 * 366);
  for (auto _ : state) {
    state.PauseTiming();
    for (int i = 0; store && i < 360; ++i) {
      at += std::chrono::seconds(10);
      if (!(*store)->Commit(SecondOf(100, at))) state.SkipWithError("commit");
    }
    state.ResumeTiming();
    if (!store || !(*store)->Retain(at + std::chrono::minutes(20))) {
      state.SkipWithError("retain");
      break;
    }
  }
}
BENCHMARK(RollUpAnHour)->Iterations(3)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace tactus::knowledge
