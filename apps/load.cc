// tactus load: drives a KServe v2 server at a rate of its own choosing and says who met the
// deadline.
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <malloc.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/error_line.h"
#include "base/written_file.h"
#include "commands.h"
#include "experiment/experiment.h"
#include "experiment/kept_files.h"
#include "load/closed_report.h"
#include "load/inputs.h"
#include "load/load_run.h"
#include "load/transport.h"
#include "metrics/report.h"
#include "output_file.h"
#include "workload/accuracy_limit.h"
#include "workload/profile_file.h"
#include "workload/scenario.h"

namespace tactus {
namespace {

using Json = nlohmann::json;

struct LoadFlags {
  std::string scenario;
  std::string protocol = "http";
  std::string url;
  std::string ca;
  std::string token_file;
  std::string models;
  double rate = 100;
  std::string process = "poisson";
  double cv = 1;
  std::string trace;
  double duration = 10;
  double warmup = 0;
  std::uint64_t seed = 1;
  double slo = 0;      // milliseconds, as on the command line; 0: what the server says
  double timeout = 0;  // milliseconds; 0: none
  std::uint32_t priority = 0;
  int connections = 0;
  double drain_s = 10;
  std::vector<std::string> shapes;
  std::vector<std::string> inputs;
  bool random = false;
  std::string policy;
  std::string profile;
  int lanes = 0;  // of the server; 0: the scenario's
  int concurrency = 0;
  double retry_after_s = 0;
  std::string json;
};

// Ctrl-C and SIGTERM end the sending; the report of what was sent follows when the answers are
// there. A second one ends everything. The signals are blocked in every thread and taken by one of
// our own, so no handler needs a global.
class StopOnSignal {
 public:
  StopOnSignal() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGINT);
    sigaddset(&set_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    thread_ = std::jthread([this](const std::stop_token& ending) {
      const timespec briefly{0, 100'000'000};
      while (!ending.stop_requested()) {
        if (sigtimedwait(&set_, nullptr, &briefly) <= 0) continue;
        if (!source_.request_stop()) std::_Exit(130);
      }
    });
  }
  std::stop_token token() const { return source_.get_token(); }

 private:
  sigset_t set_{};
  std::stop_source source_;
  std::jthread thread_;
};

std::unexpected<Error> Wrong(const std::string& message) { return InvalidArgument(message); }

// "ee_s:3,ee_m:2,ee_l": names with their weights in the rate, 1 where none is given.
Status ReadModels(const std::string& text, Scenario& scenario) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    ScenarioModel model;
    model.name = item.substr(0, item.find(':'));
    if (item.size() > model.name.size()) {
      const std::string_view weight = item.substr(model.name.size() + 1);
      const auto [end, error] =
          std::from_chars(weight.data(), weight.data() + weight.size(), model.ratio);
      if (error != std::errc() || end != weight.data() + weight.size() || model.ratio <= 0) {
        return Wrong(fmt::format("--models: '{}' should be NAME or NAME:WEIGHT", item));
      }
    }
    if (model.name.empty()) return Wrong(fmt::format("--models: a name is missing in '{}'", text));
    model.profile_as = model.name;
    scenario.models.push_back(std::move(model));
  }
  if (scenario.models.empty()) return Wrong("name the models: --models a:3,b:2,c:1");
  return {};
}

// "x=3,48,160"
Expected<std::map<std::string, Shape>> ReadShapes(const std::vector<std::string>& texts) {
  std::map<std::string, Shape> shapes;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    std::string_view rest = std::string_view(text).substr(std::min(equals, text.size() - 1) + 1);
    Shape shape;
    while (equals != std::string::npos && !rest.empty()) {
      const std::string_view item = rest.substr(0, rest.find(','));
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), value);
      if (error != std::errc() || end != item.data() + item.size() || value < 1) break;
      shape.push_back(value);
      rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    }
    if (shape.empty() || !rest.empty() || equals == 0) {
      const std::string what = equals == std::string::npos || equals == 0 ? "names no input"
                               : rest.empty()
                                   ? "gives no sizes"
                                   : fmt::format("'{}' is no size, a whole number above 0",
                                                 rest.substr(0, rest.find(',')));
      return InvalidArgument(
          fmt::format("--shape '{}': {}; write INPUT=N,N,..., such as x=3,48,160", text, what));
    }
    shapes[text.substr(0, equals)] = std::move(shape);
  }
  return shapes;
}

// "jpeg=street1.jpg"
Expected<std::map<std::string, std::filesystem::path>> ReadFiles(
    const std::vector<std::string>& texts) {
  std::map<std::string, std::filesystem::path> files;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
      return InvalidArgument(fmt::format("--input '{}' should be INPUT=FILE", text));
    }
    files[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return files;
}

Expected<Scenario> MakeScenario(const LoadFlags& flags) {
  if (!flags.scenario.empty()) {
    auto scenario = LoadScenario(flags.scenario);
    if (!scenario) return scenario;
    if (const auto without = CheckNoPipelines(*scenario); !without) {
      return std::unexpected(without.error());
    }
    scenario->lane_kinds.clear();  // a server's lanes are alike, and stay
    scenario->lane_faults.clear();
    if (scenario->lanes == kAutoLanes) scenario->lanes = 1;  // the server's own choice is its own
    if (flags.lanes > 0) scenario->lanes = flags.lanes;
    return scenario;
  }
  Scenario scenario;
  scenario.name = "load";
  scenario.duration_s = flags.duration;
  scenario.warmup_s = flags.warmup;
  scenario.seed = flags.seed;
  scenario.rate_rps = flags.rate;
  scenario.cv = flags.cv;
  scenario.trace = flags.trace;
  scenario.popularity = Popularity::kRatio;
  const std::map<std::string, ArrivalProcess> processes{{"poisson", ArrivalProcess::kPoisson},
                                                        {"gamma", ArrivalProcess::kGamma},
                                                        {"uniform", ArrivalProcess::kUniform},
                                                        {"trace", ArrivalProcess::kTrace}};
  scenario.process = processes.at(flags.process);
  if (flags.lanes > 0) scenario.lanes = flags.lanes;
  if (auto read = ReadModels(flags.models, scenario); !read) {
    return std::unexpected(read.error());
  }
  for (ScenarioModel& model : scenario.models) model.slo_ms = flags.slo;
  return scenario;
}

// The line on a terminal is rewritten in place; in a file a line every few seconds is enough.
class ProgressLine {
 public:
  void operator()(const LoadProgress& progress) {
    if (terminal_) {
      fmt::print(stderr, "\r\033[K{}", ToText(progress));
      return;
    }
    if (progress.elapsed_s < next_) return;
    fmt::print(stderr, "{}\n", ToText(progress));
    next_ = progress.elapsed_s + 5;
  }
  void Clear() {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  double next_ = 5;
};

constexpr const char* kEmulated =
    "EMULATED: the server has no device for a model of this run; its times come from a profile\n";

// Before all figures: they are not the server's then.
void PrintClientLimit(const LoadFlags& flags, const LoadResult& result) {
  if (result.unsent == 0) return;
  fmt::print(
      "THE CLIENT WAS A LIMIT: {} of {} requests were not sent, since all {} connections were\n"
      "busy until their time was over, and others waited for one; with --connections of the\n"
      "rate times the longest SLO, none does\n\n",
      result.unsent, result.unsent + result.sent,
      flags.connections > 0 ? flags.connections : kHttpConnections);
}

void PrintNotes(const LoadFlags& flags, const LoadResult& result, const std::string& no_images) {
  fmt::print(
      "sent {} requests; left {:.3f} ms (P50), {:.3f} ms (P99), {:.3f} ms (at most) later "
      "than meant, which counts as latency\n",
      result.sent, result.lag_p50_ms, result.lag_p99_ms, result.lag_max_ms);
  if (result.emulated) fmt::print("{}", kEmulated);
  if (!result.accuracy_measured && result.report.all.accuracy > 0) {  // models state theirs
    fmt::print("accuracy was not measured: {}\n",
               no_images.empty() ? "no model here takes the labelled images" : no_images);
  }
  if (result.unanswered > 0) {
    fmt::print("{} requests had no answer {} s after the last was sent and count as errors\n",
               result.unanswered, flags.drain_s);
  }
  if (result.unexpected > 0) {
    fmt::print("{} answers belonged to no request: the server answered twice\n", result.unexpected);
  }
  if (!result.first_error.empty()) fmt::print("first error: {}\n", result.first_error);
}

// 2 for what the user can mend, 1 for a run that did not end well.
int Complain(const Error& error) {
  PrintError(error.message);
  return error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kNotFound ? 2 : 1;
}

Expected<LoadOptions> MakeOptions(const LoadFlags& flags) {
  auto scenario = MakeScenario(flags);
  if (!scenario) return std::unexpected(scenario.error());
  auto shapes = ReadShapes(flags.shapes);
  if (!shapes) return std::unexpected(shapes.error());
  auto files = ReadFiles(flags.inputs);
  if (!files) return std::unexpected(files.error());
  LoadOptions options;
  options.scenario = std::move(*scenario);
  options.slo_from_server = flags.scenario.empty() && flags.slo <= 0;
  options.timeout = std::chrono::microseconds(static_cast<std::int64_t>(flags.timeout * 1000));
  options.drain = std::chrono::milliseconds(static_cast<std::int64_t>(flags.drain_s * 1000));
  options.inputs.shapes = std::move(*shapes);
  options.inputs.files = std::move(*files);
  return options;
}

// The report, and beside its run what the sending itself was like.
Status WriteRun(const RunReport& run, const Json& generator, const std::string& path) {
  Report report;
  report.runs.push_back(run);
  Json json = Json::parse(ToJson(report));
  json["runs"][0]["generator"] = generator;
  return WriteFileText(json.dump(2) + "\n", path, "report");
}

Status WriteOpenLoop(const LoadResult& result, const std::string& path) {
  return WriteRun(result.report,
                  {{"sent", result.sent},
                   {"unanswered", result.unanswered},
                   {"unexpected", result.unexpected},
                   {"unsent", result.unsent},
                   {"lag_p50_ms", result.lag_p50_ms},
                   {"lag_p99_ms", result.lag_p99_ms},
                   {"lag_max_ms", result.lag_max_ms},
                   {"first_error", result.first_error}},
                  path);
}

// What no scheduler can beat at this load with these latencies. A scenario's own profile serves
// where none is named: it is what the scenario's simulation counts on.
Status AddAccuracyLimit(const LoadFlags& flags, const Scenario& scenario, RunReport& report) {
  const std::string path = flags.profile.empty() ? scenario.profile.string() : flags.profile;
  if (path.empty()) return {};
  const auto profile = LoadProfile(path);
  if (!profile) return std::unexpected(profile.error());
  const auto limits = AccuracyLimit(scenario, *profile);
  if (!limits) return std::unexpected(limits.error());
  if (!limits->has_value()) return {};
  report.accuracy_limit = (*limits)->largest_batch;
  report.accuracy_limit_by_rate = (*limits)->by_rate;
  return {};
}

// As fast as answers come: for overhead, saturation and callers that insist.
int RunClosed(const LoadFlags& flags, const LoadOptions& options, Transport& transport) {
  ClosedLoopOptions closed;
  for (const ScenarioModel& model : options.scenario.models) {
    closed.models.push_back({.name = model.name, .weight = model.ratio});
  }
  closed.concurrency = flags.concurrency;
  closed.retry_after = FromSeconds(flags.retry_after_s);
  closed.warmup = std::chrono::milliseconds(static_cast<std::int64_t>(flags.warmup * 1000));
  closed.duration = std::chrono::milliseconds(static_cast<std::int64_t>(flags.duration * 1000));
  closed.drain = options.drain;
  closed.inputs = options.inputs;
  const auto result = RunClosedLoop(transport, closed);
  if (!result) return Complain(result.error());
  if (result->emulated) fmt::print("{}", kEmulated);
  fmt::print("{}", ToText(*result, flags.concurrency));
  if (!flags.json.empty()) {
    RunReport run = ReportOf(*result, flags.concurrency);
    run.source = fmt::format("load {}{}", transport.name(), result->emulated ? ", emulated" : "");
    run.commit = BuildCommit();
    run.machine = MachineKind();
    run.duration_s = flags.duration;
    const auto written = WriteRun(run, Json::parse(GeneratorJson(*result)), flags.json);
    if (!written) return Complain(written.error());
  }
  return result->failed() > 0 || result->unanswered > 0 ? 1 : 0;
}

int Run(const LoadFlags& flags) {
  auto options = MakeOptions(flags);
  if (!options) return Complain(options.error());
  if (const auto kept = KeepFilesOf(options->scenario, {flags.json}); !kept) {
    return Complain(kept.error());
  }
  std::string no_images;
  std::optional<ImageSet> images;
  if (flags.random) {
    no_images = "--random was given";
  } else if (auto loaded = LoadTestImages(); loaded) {
    images = std::move(*loaded);
  } else {
    no_images = loaded.error().message;
  }
  options->inputs.images = images ? &*images : nullptr;
  const StopOnSignal signals;
  auto transport = MakeTransport(
      flags.protocol,
      {.url = flags.url.empty() ? (flags.protocol == "http" ? "127.0.0.1:8000" : "127.0.0.1:8001")
                                : flags.url,
       .ca = flags.ca,
       .token_file = flags.token_file,
       .connections = flags.connections,
       .timeout = options->timeout,
       .priority = flags.priority});
  if (!transport) return Complain(transport.error());
  if (flags.concurrency > 0) return RunClosed(flags, *options, **transport);
  ProgressLine line;
  auto result = RunLoad(
      **transport, *options, [&line](const LoadProgress& p) { line(p); }, signals.token());
  line.Clear();
  if (!result) return Complain(result.error());
  result->report.policy = flags.policy.empty() ? options->scenario.policy : flags.policy;
  if (flags.policy.empty() && flags.scenario.empty()) result->report.policy.clear();  // unknown
  if (auto added = AddAccuracyLimit(flags, options->scenario, result->report); !added) {
    return Complain(added.error());
  }
  PrintClientLimit(flags, *result);
  fmt::print("{}\n", ToTable({&result->report, 1}, true));
  PrintNotes(flags, *result, no_images);
  if (!flags.json.empty()) {
    const auto written = WriteOpenLoop(*result, flags.json);
    if (!written) return Complain(written.error());
  }
  const auto errors = result->report.all.outcomes[static_cast<int>(Outcome::kError)];
  return errors > 0 || result->unanswered > 0 || result->unexpected > 0 ? 1 : 0;
}

void DeclareArrivals(LoadFlags& flags, CLI::App& command) {
  command
      .add_option("scenario", flags.scenario,
                  "scenario file: models, SLOs, arrivals, duration, seed")
      ->check(ReadFile());
  command.add_option("--protocol", flags.protocol, "http or grpc")
      ->check(CLI::IsMember({"http", "grpc"}))
      ->capture_default_str();
  command.add_option("--url", flags.url,
                     "host:port (default 127.0.0.1:8000 for HTTP, 127.0.0.1:8001 for gRPC), or "
                     "https://host:port");
  command
      .add_option("--ca", flags.ca,
                  "speak TLS; trust server certificates that one of these (PEM) has signed")
      ->check(ReadFile());
  command
      .add_option("--token-file", flags.token_file,
                  "a file whose first line is the bearer token for the server, of the scopes read "
                  "and infer")
      ->check(ReadFile());
  command.add_option("--models", flags.models,
                     "without a scenario: the models, and weights in the rate, NAME:WEIGHT,...");
  command.add_option("--rate", flags.rate, "requests per second, all models together")
      ->check(CLI::Range(1e-6, 1e7))
      ->capture_default_str();
  command.add_option("--process", flags.process, "poisson, gamma, uniform or trace")
      ->check(CLI::IsMember({"poisson", "gamma", "uniform", "trace"}))
      ->capture_default_str();
  command.add_option("--cv", flags.cv, "gamma: coefficient of variation of the gaps")
      ->check(AboveZero())
      ->capture_default_str();
  command.add_option("--trace", flags.trace, "trace: arrival instants in seconds, one a line")
      ->check(CLI::ExistingFile)
      ->check(ReadFile());
  command.add_option("--duration", flags.duration, "seconds of sending")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  command.add_option("--warmup", flags.warmup, "seconds at the start that do not count")
      ->check(NotBelowZero())
      ->capture_default_str();
  command.add_option("--seed", flags.seed, "seed of arrivals and inputs")
      ->check(SeedRange())
      ->capture_default_str();
}

void DeclareCalls(LoadFlags& flags, CLI::App& command) {
  command
      .add_option("--slo-ms", flags.slo,
                  "deadline of every request (default: what the server's models say)")
      ->check(CLI::Range(0.0, 1e8));
  command
      .add_option("--timeout-ms", flags.timeout,
                  "timeout that each request carries; over gRPC also the call's deadline (default: "
                  "none)")
      ->check(CLI::Range(0.0, 1e8));
  command
      .add_option("--priority", flags.priority,
                  "priority of each request: 1 is the highest; 0: the model's default")
      ->capture_default_str();
  command
      .add_option("--connections", flags.connections,
                  fmt::format("connections: over HTTP the largest number (default {}), over gRPC "
                              "the exact number (default {})",
                              kHttpConnections, kGrpcConnections))
      ->check(CLI::Range(0, 4096));
  command.add_option("--drain", flags.drain_s, "seconds to wait for the last answers")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  command.add_option("--shape", flags.shapes, "size of dynamic dimensions: INPUT=3,48,160");
  command
      .add_option("--input", flags.inputs,
                  "INPUT=FILE: every request sends the bytes of this file, for example a JPEG")
      ->check(ReadFile());
  command.add_flag("--random", flags.random, "random inputs instead of labelled images");
}

void DeclareReport(LoadFlags& flags, CLI::App& command) {
  command.add_option("--policy", flags.policy,
                     "a label for the report: the policy that the server runs, which this does not "
                     "change");
  command
      .add_option("--profile", flags.profile,
                  "latencies of the server's machine, for the accuracy limit of this load "
                  "(default: the scenario's)")
      ->check(CLI::ExistingFile)
      ->check(ReadFile());
  command
      .add_option("--lanes", flags.lanes,
                  "lanes of the server, for the same limit (default: the scenario's, else 1)")
      ->check(CLI::Range(1, 4096));
  command
      .add_option("--concurrency", flags.concurrency,
                  "closed loop instead: this many callers, shared among the models by weight; each "
                  "calls again when it has its answer")
      ->check(CLI::Range(1, 4096));
  command
      .add_option("--retry-after", flags.retry_after_s,
                  "closed loop: seconds until a caller that was refused calls again")
      ->check(CLI::Range(0.0, 1e6));
  command.add_option("--json", flags.json, "write the report to this file")->check(WritableFile());
}

// A scenario says these itself; beside it they would change nothing. A closed loop takes its times
// from the command line.
Status RefuseBesideScenario(const CLI::App& command, const LoadFlags& flags) {
  for (const std::string name : {"--models", "--rate", "--process", "--cv", "--trace", "--duration",
                                 "--warmup", "--seed", "--slo-ms"}) {
    const bool time = name == "--duration" || name == "--warmup";
    if (flags.scenario.empty() || command.count(name) == 0) continue;
    if (time && flags.concurrency > 0) continue;
    return Wrong(name + ": " + flags.scenario + " says it; change it there, or leave one out");
  }
  return {};
}

}  // namespace

void AddLoad(CLI::App& app, CommandContext& context) {
  const auto flags = std::make_shared<LoadFlags>();
  CLI::App* command = app.add_subcommand("load",
                                         "Send requests to a KServe v2 server at a given rate "
                                         "(open loop) and report how many met the deadline");
  DeclareArrivals(*flags, *command);
  DeclareCalls(*flags, *command);
  DeclareReport(*flags, *command);
  command->callback([flags, command, &context] {
    if (const Status fit = RefuseBesideScenario(*command, *flags); !fit) {
      context.exit_code = Complain(fit.error());
      return;
    }
    // Answers of 600 kB would cost half a millisecond of page faults each: keep freed memory.
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    context.exit_code = Run(*flags);
  });
}

}  // namespace tactus
