// What serving costs the engine: images per second through dispatcher, lane and reply at
// saturation, beside a bare ONNX Runtime loop over batches of the same size on the same core, in
// turns.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/source_path_for_test.h"
#include "engines/registry.h"
#include "metrics/report.h"
#include "platform/cpu_affinity.h"
#include "policies/registry.h"
#include "program.h"
#include "raw_loop.h"
#include "runtime/runtime.h"
#include "server/kserve/model_config.h"

namespace tactus {
namespace {

constexpr const char* kProgram = "tactus_bench_engine";

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct BenchOptions {
  std::string models = SourcePath("models");
  std::vector<std::string> names = {"ee_s", "ee_m", "ee_l"};
  int rounds = 5;
  double seconds = 2;
  double bar = 0.95;
  std::string json;
  std::string raw;  // only the bare loop of this model
};

struct Rates {
  double raw = 0;  // images per second
  double served = 0;
  double mean_batch = 0;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// Sends single images to the runtime, so many at once that a full batch always waits.
class Saturation {
 public:
  Saturation(InferenceService& service, std::shared_ptr<const ModelSpec> model)
      : service_(service), model_(std::move(model)), shape_(model_->inputs[0].dims) {
    shape_[0] = 1;
    // Images of clients that know nothing of each other lie apart in memory.
    for (int i = 0; i < kOutstanding; ++i) {
      images_.push_back(std::make_shared<std::vector<std::byte>>(
          static_cast<std::size_t>(*ElementCount(shape_)) * sizeof(float)));
    }
  }

  // Images answered per second, after a tenth of `length` to get going.
  Expected<double> Run(Duration length) {
    const auto begin = Clock::now();
    const auto counted = begin + length / 10;
    const auto end = counted + length;
    std::int64_t at_start = -1;
    for (std::size_t next = 0; Clock::now() < end; ++next) {
      room_.acquire();
      if (failed_.load()) return Internal("a request failed while the benchmark ran");
      if (at_start < 0 && Clock::now() >= counted) at_start = answered_.load();
      Send(images_[next % images_.size()]);
    }
    const std::int64_t answered = answered_.load() - at_start;
    const double seconds = ToSeconds(Clock::now() - counted);
    for (int i = 0; i < kOutstanding; ++i) room_.acquire();  // the rest is answered
    room_.release(kOutstanding);
    return static_cast<double>(answered) / seconds;
  }

 private:
  static constexpr int kOutstanding = 64;

  void Send(const std::shared_ptr<std::vector<std::byte>>& image) {
    InferCall call;
    call.model = model_;
    call.inputs.push_back({model_->inputs[0].name, DataType::kFp32, shape_, *image});
    call.keepalive = image;
    call.received = Clock::now();
    call.reply = [this](InferReply&& reply) {
      if (!reply.status) failed_.store(true);
      answered_.fetch_add(1, std::memory_order_relaxed);
      room_.release();
    };
    service_.Infer(std::move(call));
  }

  InferenceService& service_;
  const std::shared_ptr<const ModelSpec> model_;
  Shape shape_;
  std::vector<std::shared_ptr<std::vector<std::byte>>> images_;
  std::counting_semaphore<kOutstanding> room_{kOutstanding};
  std::atomic<std::int64_t> answered_{0};
  std::atomic<bool> failed_{false};
};

Expected<double> RawRate(const ModelSpec& model, const std::vector<int>& core, Duration length) {
  Expected<RawLoopResult> result = Internal("not run");
  std::thread lane([&] {
    PinThisThread(core);
    result = RunRawLoop(model.exits.back().graph, model.max_batch, length);
  });
  lane.join();
  if (!result) return std::unexpected(result.error());
  return static_cast<double>(result->batches) * model.max_batch / ToSeconds(result->elapsed);
}

// Prints the bare loop's images per second and nothing else, for a script that measures a server.
int PrintRawRate(const BenchOptions& options) {
  const auto spec = ReadModelSpec(fs::path(options.models) / options.raw, 1, "");
  const auto rate =
      spec ? RawRate(*spec, AssignCores(AllowedCores(), 1).lane(0), FromSeconds(options.seconds))
           : std::unexpected(spec.error());
  if (!rate) {
    fmt::print(stderr, "bench engine: {}\n", rate.error().message);
    return 2;
  }
  fmt::print("{}\n", *rate);
  return 0;
}

Expected<double> MeanBatch(const Runtime& runtime, const std::string& name) {
  const auto statistics = runtime.Statistics(name, -1);
  if (!statistics) return std::unexpected(statistics.error());
  const ModelStatistics& all = statistics->front();
  return static_cast<double>(all.inference_count) /
         static_cast<double>(std::max<std::uint64_t>(all.execution_count, 1));
}

// Interleaved rounds; the figures are medians, the ratio that of each round with itself.
Expected<Rates> MeasureModel(Runtime& runtime, const std::string& name, const CpuAffinity& cores,
                             const BenchOptions& options, double& ratio) {
  const auto model = runtime.Find(name, -1);
  if (!model) return std::unexpected(model.error());
  Saturation saturation(runtime, *model);
  std::vector<double> raw;
  std::vector<double> served;
  std::vector<double> ratios;
  const Duration length = FromSeconds(options.seconds);
  for (int round = 0; round < options.rounds; ++round) {
    const auto a = RawRate(**model, cores.lane(0), length);
    if (!a) return std::unexpected(a.error());
    const auto b = saturation.Run(length);
    if (!b) return std::unexpected(b.error());
    raw.push_back(*a);
    served.push_back(*b);
    ratios.push_back(*b / *a);
    fmt::print(stderr, "{} round {}/{}: raw {:.0f}, served {:.0f} images/s\n", name, round + 1,
               options.rounds, *a, *b);
  }
  const auto batch = MeanBatch(runtime, name);
  if (!batch) return std::unexpected(batch.error());
  ratio = Median(ratios);
  return Rates{Median(raw), Median(served), *batch};
}

RunReport Describe(const std::string& name, const std::string& source, double rate, double batch,
                   double seconds) {
  RunReport run;
  run.policy = "all-final";
  run.scenario = name;
  run.source = source;
  run.commit = BuildCommit();
  run.machine = MachineKind();
  run.duration_s = seconds;
  run.all.offered_rps = run.all.goodput_rps = rate;
  run.all.requests = static_cast<std::int64_t>(rate * seconds);
  run.all.mean_batch = batch;
  return run;
}

Expected<std::unique_ptr<Runtime>> StartRuntime(const BenchOptions& options, Engine& engine) {
  auto policy = MakePolicy("all-final");
  if (!policy) return std::unexpected(policy.error());
  RuntimeParts parts;
  parts.policy = *std::move(policy);
  parts.engine_for = [&engine](std::string_view) -> Expected<Engine*> { return &engine; };
  auto runtime =
      std::make_unique<Runtime>(RuntimeOptions{.expiry = Expiry::kNever}, std::move(parts));
  runtime->Start();
  for (const std::string& name : options.names) {
    auto spec = ReadModelSpec(fs::path(options.models) / name, 1, "");
    if (!spec) return std::unexpected(spec.error());
    if (const Status served = runtime->Serve(*std::move(spec)); !served) {
      return std::unexpected(served.error());
    }
  }
  return runtime;
}

Expected<Report> RunBench(const BenchOptions& options) {
  auto engine = MakeEngine("onnxruntime", {});
  if (!engine) return std::unexpected(engine.error());
  const CpuAffinity cores = AssignCores(AllowedCores(), 1);
  auto runtime = StartRuntime(options, **engine);
  if (!runtime) return std::unexpected(runtime.error());
  PinThisThread(cores.others);  // this thread is the client
  Report report;
  fmt::print("{:<8} {:>14} {:>14} {:>8} {:>11}\n", "model", "raw images/s", "served", "ratio",
             "mean batch");
  for (const std::string& name : options.names) {
    double ratio = 0;
    const auto rates = MeasureModel(**runtime, name, cores, options, ratio);
    if (!rates) return std::unexpected(rates.error());
    fmt::print("{:<8} {:>14.0f} {:>14.0f} {:>8.3f} {:>11.2f}\n", name, rates->raw, rates->served,
               ratio, rates->mean_batch);
    const double seconds = options.rounds * options.seconds;
    report.runs.push_back(Describe(name, "raw onnxruntime loop", rates->raw, 10, seconds));
    report.runs.push_back(
        Describe(name, "runtime in process", rates->served, rates->mean_batch, seconds));
    report.checks.push_back(
        AtLeast(fmt::format("{}: images/s through the dispatcher over a raw loop", name), ratio,
                options.bar));
  }
  (*runtime)->Stop(Seconds(1));
  return report;
}

}  // namespace
}  // namespace tactus

int main(int argc, char** argv) {
  tactus::BenchOptions options;
  CLI::App app{"Images per second through Tactus beside a bare ONNX Runtime loop"};
  app.add_option("--models", options.models, "Model repository")->capture_default_str();
  app.add_option("--names", options.names, "Models: a,b")->delimiter(',');
  app.add_option("--rounds", options.rounds, "Turns of each")->check(CLI::Range(1, 1000));
  app.add_option("--seconds", options.seconds, "Length of a turn")->check(CLI::PositiveNumber);
  app.add_option("--json", options.json, "Write the figures to this file");
  app.add_option("--raw", options.raw, "Only print the bare loop's images/s for this model");
  CLI11_PARSE(app, argc, argv);
  if (!options.raw.empty()) return tactus::PrintRawRate(options);
  const auto report = tactus::RunBench(options);
  if (!report) return tactus::CannotRun(tactus::kProgram, report.error());
  return tactus::Conclude(tactus::kProgram, *report, options.json);
}
