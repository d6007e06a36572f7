// tactus profile: measures what batches cost on this machine, or imports such a table.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error_line.h"
#include "commands.h"
#include "engines/device_name.h"
#include "engines/registry.h"
#include "experiment/experiment.h"
#include "load/front_cost.h"
#include "metrics/report.h"
#include "output_file.h"
#include "platform/process.h"
#include "platform/processors.h"
#include "profiling/machine.h"
#include "profiling/machine_peaks.h"
#include "profiling/profile_text.h"
#include "profiling/profiler.h"
#include "serve_options.h"
#include "server/kserve/ensemble_config.h"
#include "server/kserve/model_config.h"
#include "service/model_folders.h"
#include "workload/profile_file.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

struct ProfileCommand {
  std::string models;
  std::string out = "profile.json";
  std::string engine = "onnxruntime";
  std::string onnxruntime;
  std::vector<std::string> only;
  int repetitions = 300;
  double budget_s = 3;
  int max_batch = 0;
  bool quick = false;
  bool resume = false;
  bool no_pin = false;
  bool front = false;
  int threads = 1;
  std::string device = "cpu";
  double share = 100;  // per cent
  std::string import_alpha_beta;
  std::string import_cells;
};

// Set by the signal handler: the measurement ends after its run, and its samples are kept.
volatile std::sig_atomic_t interrupted = 0;

std::string Now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

// A bar that is redrawn on a terminal; elsewhere a line every ten seconds.
class ProgressBar {
 public:
  void Show(const ProfilerProgress& progress) {
    constexpr int kWidth = 30;
    const int filled = static_cast<int>(progress.done * kWidth);
    const std::string text =
        fmt::format("[{:#<{}}{:.<{}}] {:3.0f} %  {:.0f} s gone, about {:.0f} s to go", "", filled,
                    "", kWidth - filled, 100 * progress.done, ToSeconds(progress.elapsed),
                    ToSeconds(progress.remaining));
    if (terminal_) {
      fmt::print(stderr, "\r{}\033[K", text);
    } else if (progress.elapsed >= next_line_) {
      fmt::print(stderr, "{}\n", text);
      next_line_ = progress.elapsed + Seconds(10);
    }
  }
  void End() {
    if (terminal_) fmt::print(stderr, "\n");
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  Duration next_line_{};
};

Expected<std::vector<std::string>> ModelNames(const ProfileCommand& command) {
  if (!command.only.empty()) return command.only;
  auto names = ListModels(command.models);  // those that a server would serve
  if (!names) return names;
  std::erase_if(*names, [&](const std::string& name) {  // the steps of these are measured as models
    return HoldsEnsemble(fs::path(command.models) / name, "");
  });
  if (names->empty()) {
    if (std::string why = WhyNoRepository(command.models); !why.empty()) {
      return NotFound(std::move(why));
    }
    return NotFound(fmt::format("{}: no folder in it has a config.pbtxt or a version (1, 2, ...)",
                                command.models));
  }
  return names;
}

// The version that a server would serve: the latest.
Expected<ModelSpec> ReadLatest(const fs::path& folder) {
  const auto versions = ListVersions(folder, "");
  if (!versions) return std::unexpected(versions.error());
  if (versions->empty()) {
    return NotFound(fmt::format("{}: it has no version to serve", folder.string()));
  }
  return ReadModelSpec(folder, versions->back(), "");
}

// Adds the models; those that cannot be measured are named on stderr and counted in `failed`.
// Chains of host operators run on `host`.
Status AddModels(const ProfileCommand& command, Profiler& profiler, Engine& host, int& failed) {
  const auto names = ModelNames(command);
  if (!names) return std::unexpected(names.error());
  for (const std::string& name : *names) {
    auto spec = ReadLatest(fs::path(command.models) / name);
    const bool on_host = spec && spec->platform == kHostPlatform;
    const Status added = !spec     ? std::unexpected(spec.error())
                         : on_host ? profiler.Add(*std::move(spec), host)
                                   : profiler.Add(*std::move(spec));
    if (added) continue;
    if (!command.only.empty()) return added;
    PrintError("left out: " + added.error().message);
    ++failed;
  }
  if (failed == static_cast<int>(names->size())) {
    return InvalidArgument("no model could be loaded");
  }
  return {};
}

ProfilerOptions Options(const ProfileCommand& command) {
  ProfilerOptions options;
  options.repetitions = command.quick ? std::min(command.repetitions, 60) : command.repetitions;
  options.budget = FromSeconds(command.quick ? std::min(command.budget_s, 0.5) : command.budget_s);
  options.least = std::min(options.repetitions, command.quick ? 10 : 30);
  options.max_batch = command.max_batch;
  options.pin = !command.no_pin;
  options.threads = command.threads;
  if (command.share < 100) options.share = command.share / 100;
  return options;
}

// Runs the profiler, keeping the samples beside `out` as it goes. True when it was not interrupted.
Expected<bool> Measure(const ProfileCommand& command, const Machine& machine, Profiler& profiler) {
  const fs::path partial = command.out + ".part";
  if (command.resume && fs::exists(partial)) {
    const auto earlier = LoadSamples(machine, partial);
    if (!earlier) return std::unexpected(earlier.error());
    profiler.Adopt(*earlier);
  }
  ProgressBar bar;
  Duration next_save = Seconds(5);
  Status saved;
  std::signal(SIGINT, [](int) { interrupted = 1; });
  std::signal(SIGTERM, [](int) { interrupted = 1; });
  const Status ran = profiler.Run([&](const ProfilerProgress& progress) {
    bar.Show(progress);
    if (progress.elapsed >= next_save) {
      saved = SaveSamples(profiler.samples(), machine, partial);
      next_save = progress.elapsed + Seconds(5);
    }
    return interrupted == 0 && saved.has_value();
  });
  bar.End();
  if (!ran) return std::unexpected(ran.error());
  if (!saved) return std::unexpected(saved.error());
  if (profiler.complete()) return true;
  saved = SaveSamples(profiler.samples(), machine, partial);
  if (!saved) return std::unexpected(saved.error());
  PrintError("interrupted; the same command with --resume goes on");
  return false;
}

// `told`: of these models somebody has said already how noisy they were.
int Finish(const ProfileFile& profile, const ProfileCommand& command,
           const std::set<std::string>& told = {}) {
  fmt::print("{}", ToTable(profile));
  for (const ProfiledModel& model : profile.models) {
    const auto warning = told.contains(model.name) ? std::nullopt : Warning(model);
    if (warning) PrintWarning(*warning);
  }
  const Status saved = SaveProfile(profile, command.out);
  if (!saved) return ReportBadInput(saved.error());
  fmt::print("wrote {}\n", command.out);
  return 0;
}

int Import(const ProfileCommand& command) {
  auto profile = command.import_cells.empty()
                     ? ImportAlphaBeta(command.import_alpha_beta,
                                       command.max_batch > 0 ? command.max_batch : 32)
                     : ImportCells(command.import_cells);
  if (!profile) return ReportBadInput(profile.error());
  profile->created = Now();
  return Finish(*profile, command);
}

// As fractions of what the processor can do, which is measured before and after: it may be busy.
// The models of which it was said how much their latencies moved.
std::set<std::string> AddUses(const MachinePeaks& before, Profiler& profiler,
                              std::vector<ProfiledModel>& models) {
  const MachinePeaks after = MeasurePeaks({});
  std::vector<std::string> warnings = profiler.AddUses(Best(before, after), models);
  for (std::string& line : Disagreements(before, after)) warnings.push_back(std::move(line));
  for (const std::string& warning : warnings) {
    PrintWarning(warning);
  }
  std::set<std::string> told;
  for (std::size_t m = 0; m < models.size(); ++m) {
    const bool has_uses = !models[m].resources_source.empty();
    if (has_uses && profiler.UncertaintyOf(m)) told.insert(models[m].name);
  }
  return told;
}

// Of a device: what it counts of itself, and an estimate of the rest where the models are graphs,
// which the processor can examine.
void AddDeviceUses(const ProfileCommand& command, Profiler& profiler,
                   std::vector<ProfiledModel>& models) {
  std::unique_ptr<Engine> examiner;
  if (command.engine == "onnxruntime") {
    auto made =
        MakeEngine(command.engine, {.emulated = {}, .onnxruntime_library = command.onnxruntime});
    if (made) examiner = *std::move(made);
  }
  for (const std::string& warning : profiler.AddDeviceUses(examiner.get(), models)) {
    PrintWarning(warning);
  }
}

Status CheckProfiledShare(const ProfileCommand& command, bool on_device) {
  if (command.share >= 100 || on_device) return {};
  return InvalidArgument(
      fmt::format("--share {:g}: on the processor a share is a number of threads; give --threads "
                  "instead, or name a device with --device",
                  command.share));
}

int MeasureModels(const ProfileCommand& command) {
  if (command.engine == "emulated") {
    return ReportBadInput(
        {ErrorCode::kInvalidArgument,
         "the emulated engine takes its latencies from a profile, so it cannot be profiled"});
  }
  const std::vector<int> devices = ParseDevices(command.device).value();
  if (Status fits = CheckProfiledShare(command, !devices.empty()); !fits) {
    return ReportBadInput(fits.error());
  }
  auto engine =
      MakeEngine(command.engine,
                 {.emulated = {}, .onnxruntime_library = command.onnxruntime, .devices = devices});
  if (!engine) return ReportBadInput(engine.error());
  if (Status fits = CheckProfiledShare(command, (*engine)->traits().device.has_value()); !fits) {
    return ReportBadInput(fits.error());
  }
  auto host = MakeEngine(kHostPlatform, {});
  if (!host) return ReportBadInput(host.error());
  Profiler profiler(**engine, Options(command));
  int failed = 0;
  if (const Status added = AddModels(command, profiler, **host, failed); !added) {
    return ReportBadInput(added.error());
  }
  for (const std::string& line : profiler.said()) PrintWarning(line);
  ProfileFile profile;
  profile.machine = ThisMachine((*engine)->traits(), command.threads, command.share / 100);
  profile.commit = BuildCommit();
  profile.created = Now();
  profile.provenance = "measured";
  const bool on_cpu = !profile.machine.device;
  const MachinePeaks before = on_cpu ? MeasurePeaks({}) : MachinePeaks{};
  const auto whole = Measure(command, profile.machine, profiler);
  if (!whole) {
    PrintError(whole.error().message);
    return 1;
  }
  if (!*whole) return 1;
  for (const std::string& why : profiler.left_out()) {
    PrintError("left out: " + why);
    ++failed;
  }
  profile.models = profiler.Result();
  std::set<std::string> told;
  if (on_cpu) {
    const std::vector<int> threads = ThreadsToTry(command.threads, FindProcessors().usable());
    for (const std::string& warning : profiler.AddThreads(threads, profile.models)) {
      PrintWarning(warning);
    }
    told = AddUses(before, profiler, profile.models);
  } else {
    AddDeviceUses(command, profiler, profile.models);
  }
  const int code = Finish(profile, command, told);
  if (code != 0) return code;
  std::error_code ignored;
  fs::remove(command.out + ".part", ignored);
  return failed == 0 ? 0 : 1;
}

int MeasureFronts(const ProfileCommand& command) {
  const int rounds = command.quick ? 1 : 5;
  const double seconds = command.quick ? 0.3 : 1;
  fmt::print(stderr, "a made-up model over HTTP and gRPC: about {:.0f} s\n",
             2 * 2 * rounds * seconds + 2);
  FrontCost http;
  FrontCost grpc;
  for (const std::string protocol : {"http", "grpc"}) {
    const auto cost = MeasureFront(
        {.program = ThisProgram(), .protocol = protocol, .rounds = rounds, .seconds = seconds},
        [&](double done) { fmt::print(stderr, "{}: {:.0f} %\n", protocol, 100 * done); });
    if (!cost) return ReportBadInput(cost.error());
    (protocol == "http" ? http : grpc) = *cost;
    fmt::print("{:<6}{:>8.1f} us a call, {:.3f} ns a byte of its body\n", protocol, cost->call_us,
               cost->byte_ns);
  }
  fmt::print(
      "\nIn a scenario, with `bytes` in its [[models]] over HTTP, or over gRPC:\n\n"
      "[front]                 [front]\n"
      "call_us = {:<14.1f}call_us = {:.1f}\n"
      "byte_ns = {:<14.3f}byte_ns = {:.3f}\n"
      "                        unread_bytes = 16384\n",
      http.call_us, grpc.call_us, http.byte_ns, grpc.byte_ns);
  return 0;
}

int RunProfile(const ProfileCommand& command) {
  if (command.front) return MeasureFronts(command);
  if (!command.import_alpha_beta.empty() || !command.import_cells.empty()) return Import(command);
  if (command.models.empty()) {
    return ReportBadInput({ErrorCode::kInvalidArgument,
                           "give --models DIR to measure, or --import-cells or "
                           "--import-alpha-beta CSV to import"});
  }
  return MeasureModels(command);
}

}  // namespace

void AddProfile(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<ProfileCommand>();
  CLI::App* command = app.add_subcommand("profile", "Measure what batches cost on this machine");
  command->add_option("--models", options->models, "Model repository to measure");
  command->add_option("--out", options->out, "Profile to write")
      ->check(WritableFile())
      ->capture_default_str();
  command->add_option("--only", options->only, "Only these models: a,b")->delimiter(',');
  command
      ->add_option("--repetitions", options->repetitions,
                   "Counted runs of each cell: one model, exit and batch size")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--budget", options->budget_s,
                   "Seconds for the runs of one cell; slow cells get fewer, but at least 30")
      ->check(AboveZero())
      ->capture_default_str();
  command->add_option("--max-batch", options->max_batch, "No larger batch than this")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--quick", options->quick, "At most 60 runs and half a second for a cell");
  command->add_flag("--resume", options->resume, "Go on where an interrupted measurement stopped");
  command->add_flag("--no-pin", options->no_pin,
                    "Do not pin the measurement to the cores of a lane");
  command
      ->add_option("--threads", options->threads,
                   "Threads that run one batch; the same as for `tactus serve --threads`")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      ->add_option("--device", options->device,
                   "Where ONNX models run: cpu, or a device as cuda:0, as `tactus serve --device`; "
                   "AOTInductor packages (engine aoti) need a device")
      ->check(DeviceName())
      ->capture_default_str();
  command
      ->add_option("--share", options->share,
                   "Measure on this percentage of the --device, as a lane of a plan; on a "
                   "processor give --threads instead")
      ->check(CLI::Range(1.0, 100.0))
      ->capture_default_str();
  command->add_option("--engine", options->engine, "Engine to measure: " + EngineNames())
      ->capture_default_str();
  command->add_option("--onnxruntime", options->onnxruntime, "libonnxruntime.so, or its folder");
  command->add_flag("--front", options->front,
                    "Measure instead what the server spends on calls beside running them, for a "
                    "scenario's [front]");
  auto* cells = command
                    ->add_option("--import-cells", options->import_cells,
                                 "Write a profile from a CSV: model, exit, batch, latency_ms")
                    ->check(ReadFile());
  command
      ->add_option("--import-alpha-beta", options->import_alpha_beta,
                   "Write a profile from a CSV: model, alpha_ms, beta_ms, slo_ms")
      ->check(ReadFile())
      ->excludes(cells);
  command->callback([options, &context] { context.exit_code = RunProfile(*options); });
}

}  // namespace tactus
