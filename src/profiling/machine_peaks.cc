#include "profiling/machine_peaks.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <functional>
#include <new>
#include <thread>

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include "platform/cpu_affinity.h"

namespace tactus {
namespace {

constexpr int kRounds = 5;  // the best counts: others only take away
constexpr Duration kRound = Millis(20);
constexpr int kChains = 16;  // as many as hide the latency of a multiply-add
constexpr int kSteps = 16'384;
constexpr std::size_t kRead = std::size_t{8} << 20;  // bytes between two looks at the clock

// Operations done. Written for each width of vector, since the build is for any processor.
template <class Vector>
[[gnu::always_inline]] inline double MultiplyAdd(float& sink) {
  Vector chains[kChains];
  for (int c = 0; c < kChains; ++c) chains[c] = Vector{} + static_cast<float>(c);
  const Vector factor = Vector{} + 0.999f;
  const Vector term = Vector{} + 0.001f;
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 16
    for (int c = 0; c < kChains; ++c) chains[c] = chains[c] * factor + term;
  }
  for (const Vector& chain : chains) sink += chain[0];
  return 2.0 * kSteps * kChains * sizeof(Vector) / sizeof(float);
}

using Narrow = float __attribute__((vector_size(16)));
#if defined(__x86_64__)
using Middle = float __attribute__((vector_size(32)));
using Wide = float __attribute__((vector_size(64)));
[[gnu::target("avx512f,fma")]] double ComputeWide(float& sink) { return MultiplyAdd<Wide>(sink); }
[[gnu::target("avx2,fma")]] double ComputeMiddle(float& sink) { return MultiplyAdd<Middle>(sink); }
#endif
double ComputeNarrow(float& sink) { return MultiplyAdd<Narrow>(sink); }

double Compute(float& sink) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return ComputeWide(sink);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return ComputeMiddle(sink);
#endif
  return ComputeNarrow(sink);
}

// Of this thread alone, so that one that had to wait for its core is not taken to be slow.
Duration CoreTime() {
  timespec spent{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return Seconds(spent.tv_sec) + Nanos(spent.tv_nsec);
}

// Units per second of all cores together. `make` gives each thread what it does again and again,
// which returns the units done.
double Rate(const std::vector<int>& cores, const std::function<std::function<double()>()>& make) {
  std::vector<double> rates(cores.size() * kRounds);
  std::atomic<bool> no_memory{false};  // a thread had none to work on
  std::barrier start(static_cast<std::ptrdiff_t>(cores.size()));
  const auto measure = [&](std::size_t core) {
    PinThisThread({cores[core]});
    std::function<double()> work;
    try {
      work = make();
    } catch (const std::bad_alloc&) {
      no_memory.store(true);
      return start.arrive_and_drop();
    }
    work();
    for (int round = 0; round < kRounds; ++round) {
      start.arrive_and_wait();
      const Duration begin = CoreTime();
      double units = 0;
      Duration passed{};
      while (passed < kRound) {
        units += work();
        passed = CoreTime() - begin;
      }
      rates[cores.size() * static_cast<std::size_t>(round) + core] = units / ToSeconds(passed);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t core = 0; core < cores.size(); ++core) threads.emplace_back(measure, core);
  }
  if (no_memory.load()) throw std::bad_alloc();  // of whoever asked
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    double sum = 0;
    for (std::size_t core = 0; core < cores.size(); ++core) {
      sum += rates[cores.size() * static_cast<std::size_t>(round) + core];
    }
    best = std::max(best, sum);
  }
  return best;
}

// The C library looks for a byte with the widest loads that the processor has.
double ReadRate(const std::vector<int>& cores, std::size_t bytes) {
  return Rate(cores, [bytes] {
    return [buffer = std::vector<unsigned char>(bytes, 0)] {
      std::size_t read = 0;
      for (; read < kRead; read += buffer.size()) {
        const void* volatile found = std::memchr(buffer.data(), 1, buffer.size());
        if (found != nullptr) break;
      }
      return static_cast<double>(read);
    };
  });
}

std::size_t CacheBytes(int name, std::size_t otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : otherwise;
}

}  // namespace

MachinePeaks MeasurePeaks(const std::vector<int>& chosen) {
  const std::vector<int> cores = chosen.empty() ? AllowedCores() : chosen;
  MachinePeaks peaks;
  peaks.cores = static_cast<int>(cores.size());
  peaks.l1_bytes = CacheBytes(_SC_LEVEL1_DCACHE_SIZE, std::size_t{32} << 10);
  peaks.l2_bytes = CacheBytes(_SC_LEVEL2_CACHE_SIZE, std::size_t{1} << 20);
  peaks.operations = Rate(cores, [] {
    return [] {
      float sum = 0;
      const double operations = Compute(sum);
      volatile float sink = sum;  // the work is not to be optimised away
      (void)sink;
      return operations;
    };
  });
  peaks.l1 = ReadRate(cores, peaks.l1_bytes / 2);
  peaks.l2 = ReadRate(cores, peaks.l2_bytes / 2);
  peaks.beyond = ReadRate(cores, peaks.l2_bytes * 8);
  return peaks;
}

MachinePeaks Best(const MachinePeaks& a, const MachinePeaks& b) {
  MachinePeaks best = a;
  best.operations = std::max(a.operations, b.operations);
  best.l1 = std::max(a.l1, b.l1);
  best.l2 = std::max(a.l2, b.l2);
  best.beyond = std::max(a.beyond, b.beyond);
  return best;
}

std::vector<std::string> Disagreements(const MachinePeaks& a, const MachinePeaks& b) {
  std::vector<std::string> lines;
  const auto compare = [&](const char* what, double x, double y) {
    const double lacks = 1 - std::min(x, y) / std::max(x, y);
    if (!(lacks > kMostUncertainty)) return;
    lines.push_back(fmt::format(
        "the machine's peak rate of {} was {:.0f} % lower at one end of the measurement than at "
        "the other (bound: {:.0f} %), so the `{}` shares of all models are uncertain; profile "
        "again while nothing else runs",
        what, 100 * lacks, 100 * kMostUncertainty, what));
  };
  compare("fma", a.operations, b.operations);
  compare("l1", a.l1, b.l1);
  compare("l2", a.l2, b.l2);
  compare("dram", a.beyond, b.beyond);
  return lines;
}

Throughput SharesOf(const BatchWork& work, double seconds, const MachinePeaks& peaks) {
  double weights = 0;
  double largest = 0;
  for (const KernelWork& kernel : work) {
    weights += kernel.weight_bytes;
    largest = std::max(largest, kernel.activation_bytes);
  }
  // What no cache of `bytes` holds until it is read.
  const auto missed = [&](std::size_t bytes) {
    const auto size = static_cast<double>(bytes);
    double sum = 0;
    for (const KernelWork& kernel : work) {
      if (weights + largest > size) sum += kernel.weight_bytes;
      if (kernel.weight_bytes + kernel.activation_bytes > size) sum += kernel.activation_bytes;
    }
    return sum;
  };
  double operations = 0;
  for (const KernelWork& kernel : work) operations += kernel.operations;
  const auto share = [&](double amount, double peak) {
    return std::min(1.0, amount / (seconds * peak));
  };
  Throughput shares{};
  shares[static_cast<std::size_t>(Resource::kFma)] = share(operations, peaks.operations);
  shares[static_cast<std::size_t>(Resource::kL1)] = share(missed(0) + operations / 2, peaks.l1);
  shares[static_cast<std::size_t>(Resource::kL2)] = share(missed(peaks.l1_bytes), peaks.l2);
  shares[static_cast<std::size_t>(Resource::kDram)] = share(missed(peaks.l2_bytes), peaks.beyond);
  return shares;
}

std::string SourceOf(const MachinePeaks& peaks, const std::string& engine) {
  return fmt::format(
      "estimated, no hardware counters: operations and bytes of each kernel from the trace of {}, "
      "over the median latency; as shares of what {} cores reach together, measured: fma {:.3g} "
      "float operations/s; l1 {:.3g} B/s of all operands and a byte for each multiply-add; l2 "
      "{:.3g} B/s of operands beyond {} KiB; dram {:.3g} B/s of operands beyond {} KiB, from "
      "last-level cache or memory; tensor 0: multiply-adds count as fma; transfer 0: inputs lie in "
      "the memory that the batch reads",
      engine, peaks.cores, peaks.operations, peaks.l1, peaks.l2, peaks.l1_bytes >> 10, peaks.beyond,
      peaks.l2_bytes >> 10);
}

}  // namespace tactus
