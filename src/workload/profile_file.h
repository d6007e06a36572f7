// Measured latencies as they are kept on disk: one versioned JSON file (`tactus profile`), or CSV
// tables from elsewhere. Policies get a ProfileTable made from it; the simulator draws service
// times from its distributions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "core/device_facts.h"
#include "core/model.h"
#include "core/profile_table.h"
#include "core/resource_use.h"

namespace tactus {

// What batches take on a device beside the processor, means by its own clock: parts of the latency,
// which has besides them what the host does and what batches wait for.
struct ProfiledDeviceTimes {
  double upload_ms = 0;  // of the input, to the device
  double kernels_ms = 0;
  double download_ms = 0;  // of the answer

  bool operator==(const ProfiledDeviceTimes&) const = default;
};

// The distribution of one (model, exit, batch, lane class) over its repetitions, in milliseconds.
struct ProfileCell {
  int repetitions = 0;  // 0: derived, or imported without saying; such a cell has no spread
  double mean_ms = 0;
  double min_ms = 0;
  double p50_ms = 0;
  double p95_ms = 0;
  double p99_ms = 0;
  double max_ms = 0;
  double cv = 0;                                             // standard deviation over mean
  std::optional<ProfiledDeviceTimes> device = std::nullopt;  // none: the processor, or unknown
  // Where the model's resource figures are known (resources_source):
  double transfer_ms = 0;   // of the input, P95, part of the latency
  Throughput throughput{};  // of the batch alone
};

// The cell's latency at `q` in [0, 1]: linear between min, P50, P95, P99 and max.
double Quantile(const ProfileCell& cell, double q);

// What the smallest and the largest batch take with so many threads: medians of a few runs.
struct ProfiledThreads {
  int threads = 1;
  double one_ms = 0;
  double largest_ms = 0;

  bool operator==(const ProfiledThreads&) const = default;
};

struct ProfiledExit {
  std::string name;
  double accuracy = 0;             // fraction in [0, 1]; 0 when unknown
  std::vector<ProfileCell> cells;  // batch b at index b - 1
  // By ascending threads, those that the cells were measured with among them; empty: not measured.
  std::vector<ProfiledThreads> by_threads = {};
  // Least-squares fit l(b) = alpha b + beta over mean_ms, and its largest relative error.
  double alpha_ms = 0;
  double beta_ms = 0;
  double fit_error = 0;
};

struct ProfiledModel {
  std::string name;
  int max_batch = 0;
  double slo_ms = 0;                    // 0: none stated
  std::uint64_t weight_bytes = 0;       // 0: unknown
  std::uint64_t peak_memory_bytes = 0;  // 0: unknown
  // Where the cells' transfer and throughput come from; empty: there are none.
  std::string resources_source;
  // Its cells hold resource figures all the same: read from a file, and counted on by nobody.
  bool unsourced_resources = false;
  // What its batches took in service over what the cells say, both in sum. In service other batches
  // run before a batch than in the profiler, and caches and clocks are in another state. The
  // simulator multiplies by it, policies do not; 1 when not measured.
  double service_ratio = 1;
  std::vector<ProfiledExit> exits;  // shallowest first
};

// What the model holds of a device while it is loaded, in MB; 0: the profile does not say.
double MemoryOf(const ProfiledModel& profiled);

struct Machine {
  std::string fingerprint;  // stable hash of what decides latency: CPU, cores, engine, threads
  std::string cpu;
  int cores = 0;
  std::string os;
  std::string engine;                                // "onnxruntime 1.30.0"
  int threads = 1;                                   // of the engine, that ran a batch
  std::optional<DeviceFacts> device = std::nullopt;  // that batches ran on; none: the CPU
  double share = 1;  // of that device, that batches had to themselves
  bool operator==(const Machine&) const = default;
};

struct ProfileFile {
  static constexpr int kVersion = 1;
  // The least in service_ratio and service_trace: less is no ratio of durations of one batch.
  static constexpr double kLeastRatio = 1e-6;
  Machine machine;
  std::string commit;
  std::string created;     // ISO 8601, UTC
  std::string provenance;  // "measured", or what it was derived from: printed with every result
  // Measured on the serving path rather than in the engine (`tactus measure --write-overheads`):
  // from Launch to the start of execution, from its end to the dispatcher's Finish, and from there
  // to the answer. The simulator adds them; 0 when not measured.
  double launch_overhead_ms = 0;
  double finish_overhead_ms = 0;
  double answer_overhead_ms = 0;
  // How the speed of the machine moved while those were measured: in each window of the run, what
  // batches took over what the models' ratios say. The simulator multiplies by it as its own time
  // passes, from the beginning again after the end; empty: a machine that is always the same.
  double service_window_ms = 0;
  std::vector<double> service_trace;
  std::vector<ProfiledModel> models;

  const ProfiledModel* Find(const std::string& model) const;
};

// Sets the exit's fit from its cells.
void Fit(ProfiledExit& exit);

// Errors name the file, the place in it and the remedy; holes (a missing batch) are refused.
Expected<ProfileFile> LoadProfile(const std::filesystem::path& path);
Expected<ProfileFile> ParseProfile(std::string_view json, std::string_view where);
Status SaveProfile(const ProfileFile& profile, const std::filesystem::path& path);
// Columns model, alpha_ms, beta_ms, slo_ms (others are ignored): exits "final" only, batch 1..max.
Expected<ProfileFile> ImportAlphaBeta(const std::filesystem::path& csv, int max_batch);
// Columns model, exit, batch, and latency_ms or any of p50_ms, mean_ms, min_ms, p95_ms, p99_ms,
// max_ms, n: data measured elsewhere. Exits stay in the file's order.
Expected<ProfileFile> ImportCells(const std::filesystem::path& csv);
// Any of these, by the file's name and header: *.csv is a table, of alpha and beta if it has the
// column alpha_ms, then up to `max_batch`; everything else is a profile in JSON.
Expected<ProfileFile> ReadAnyProfile(const std::filesystem::path& path, int max_batch);

// What deserves a warning: latencies that fall as batches grow or exits deepen, by more than 2 %
// and 5 us, and noisy ones; one line for a model at most, with the worst of each and what to do.
std::vector<std::string> Warnings(const ProfileFile& profile);
std::optional<std::string> Warning(const ProfiledModel& model);
// The warning for a model whose batches share a lane and whose profile does not say what they use,
// or says that it is nothing; none where it does. Null: it has no profile.
std::optional<std::string> UseWarning(const std::string& model, const ProfiledModel* profiled);

struct ProfileOptions {
  double percentile = 95;  // of the cell that policies count on, (0, 100]; 0 for the mean
  double jitter_ms = 0;    // added to every latency, once, here
  // Speeds by lane class: batches take 1/speed of what the profile says.
  std::vector<double> speeds = {1};
};

// kInvalidArgument, with the arithmetic, when not even the quickest batch ever measured, with the
// jitter and the hand-over to the quickest lane and back, takes as little as the model's SLO. OK
// for a model without an SLO (0). Counts on the least latency and not on the percentile, so that a
// profile taken on a busy machine refuses nothing that can be served.
Status CheckSlo(const ProfileFile& profile, const Model& model, const ProfileOptions& options);

// A row of latencies for each of `models` in that order, restricted to each model's exits by name
// and to its max_batch, for each of the options' lane classes. An error names the model, exit or
// batch that is missing, or an SLO that nothing can meet (CheckSlo).
Expected<ProfileTable> MakeTable(const ProfileFile& profile, std::span<const Model> models,
                                 const ProfileOptions& options);

}  // namespace tactus
