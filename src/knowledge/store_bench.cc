// What a second of samples costs to write. SQLite in a folder of the system's temporary ones, or
// whatever TACTUS_BENCH_STORE names, an empty database of yours:
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

// Of so many devices, five samples each: four stages and a link.
Batch SecondOf(int devices, UtcTime at) {
  Batch batch{.term = 1};
  for (int i = 0; i < devices; ++i) {
    const std::string device = "device" + std::to_string(i);
    for (const char* stage : {"detect", "track", "pose", "read"}) {
      batch.arrivals.push_back({at, "street", stage, device, Seconds(1), 15, 1, 5, 900'000, 300});
    }
    batch.network.push_back({at, device, "rack", 40, Millis(21), 0});
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

}  // namespace
}  // namespace tactus::knowledge
