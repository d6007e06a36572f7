#include "serve_options.h"

#include <array>
#include <ranges>
#include <string>
#include <string_view>

#include "commands.h"
#include "config_file.h"
#include "engines/device_name.h"
#include "engines/registry.h"
#include "output_file.h"

namespace tactus {
namespace {

// The library's own heading, of options without a group.
constexpr const char* kPlain = "Options";

// How a repository's models come and go.
void DeclareControl(ServeOptions& o, CLI::App& command) {
  AddOption(command, "--model-control-mode", o.model_control,
            CLI::IsMember({"none", "poll", "explicit"}),
            "none: load all models at the start; poll: the same, and follow changes of the "
            "folder; explicit: load and unload models as clients ask");
  command
      .add_option("--load-model", o.load_models,
                  "With explicit control: load this model at the start; repeatable, * means all")
      ->default_str("");
  AddOption(command, "--poll-seconds", o.poll_s, CLI::Range(0.001, 1e6),
            "With poll: how often the folder is read");
}

void DeclareModels(ServeOptions& o, CLI::App& command) {
  command.option_defaults()->group("Models");
  command
      .add_option("--models", o.models,
                  "Model repository: a folder with NAME/1/model.onnx, and with NAME/config.pbtxt "
                  "where `tactus init` wrote one; repeatable")
      ->required()
      ->allow_extra_args(false)
      ->default_str("");
  DeclareControl(o, command);
  command.add_option("--engine", o.engine,
                     "Run every model on this engine (" + EngineNames() +
                         ") instead of the one its platform names; emulated needs --profile and "
                         "answers zeros");
  command.add_option("--onnxruntime", o.onnxruntime, "libonnxruntime.so, or its folder");
  AddOption(command, "--device", o.device, DeviceName(),
            "Where ONNX models run: cpu, cuda:0, or several devices as cuda:0,cuda:1, to "
            "which lanes are assigned in turn. AOTInductor packages (engine aoti) need a "
            "device; host operators run on the host (docs/reference/gpu.md)");
}

void DeclareScheduling(ServeOptions& o, CLI::App& command) {
  command.option_defaults()->group("Scheduling");
  command.add_option("--policy", o.policy, "Scheduling policy; `tactus policies` lists them");
  AddOption(command, "--expiry", o.expiry, CLI::IsMember({"unmeetable", "passed", "never"}),
            "When a waiting request is given up: unmeetable (its deadline cannot be met any "
            "more), passed, never");
  AddOption(command, "--profile", o.profile, ReadFile(),
            "Latencies measured by `tactus profile`; a model that it lacks is measured "
            "briefly when it is loaded");
  AddOption(command, "--percentile", o.percentile, CLI::IsMember({0, 50, 95, 99}),
            "Which percentile of the profile to count on: 50, 95, 99; 0 for the mean");
  AddOption(command, "--jitter-ms", o.jitter_ms, CLI::Range(0.0, 86'400'000.0),
            "Margin added to every profiled latency");
  AddOption(
      command, "--follow", o.follow, CLI::IsMember({"yes", "no", "stalls"}),
      "Correct the profile by measured latencies: yes, no, or stalls, which also "
      "keeps a reserve for stalls of the machine and costs accuracy (docs/reference/following.md)");
  command.add_flag("--allow-other-machine", o.allow_other_machine,
                   "Serve with a profile that was measured on another machine");
  AddOption(command, "--default-slo-ms", o.default_slo_ms, CLI::Range(0.001, 86'400'000.0),
            "SLO of models that state none");
}

void DeclarePlans(ServeOptions& o, CLI::App& command) {
  command.option_defaults()->group("Scheduling");
  command
      .add_option("--plan", o.plan,
                  "Split the processor, or the one --device, into lanes as this file of `tactus "
                  "plan gpulet` says (--policy planned); SIGHUP reads it again and changes the "
                  "lanes in service")
      ->check(CLI::ExistingFile)
      ->check(ReadFile())
      ->excludes("--lanes")
      ->excludes("--slots")
      ->excludes("--threads");
  command
      .add_option("--planner", o.planner,
                  "Split the processor, or the one --device, again as the load changes (--policy "
                  "planned), by gpulet, gpulet-retry, self-tuning, nexus or nexus-half. OPTIONS, "
                  "with defaults: "
                  "period=20 (s, between questions), weight=0.7 (of the last period in the average "
                  "of rates), headroom=0.25 (planned for beyond that average), bad_threshold=0.01 "
                  "(if more than this fraction of "
                  "a second's calls is late, the planner is asked at once), least=0.1 "
                  "(requests/s that any model is "
                  "planned for). The first layout is that of --plan, else one for the least rates")
      ->option_text("NAME[:OPTIONS]")
      ->excludes("--lanes")
      ->excludes("--slots")
      ->excludes("--threads");
  AddOption(command, "--on-share", o.on_share, ReadFile(),
            "With --plan or --planner: the profile of each share, 50=half.json "
            "100=whole.json, measured by `tactus profile --threads` on the processor, "
            "`tactus profile --device cuda:0 --share` on a device")
      ->option_text("PERCENT=FILE ...")
      ->default_str("");
  AddOption(command, "--device-memory-mb", o.device_memory_mb, NotBelowZero(),
            "With --plan or --planner: memory that all models together may use, as far as "
            "profiles or model files state it; 0: the machine's memory, or the --device's");
}

void DeclareHostLanes(ServeOptions& o, CLI::App& command) {
  command.option_defaults()->group("Scheduling");
  AddOption(command, "--host-lanes", o.host_lanes, CLI::Range(1, 256),
            "Lanes for host operators (models of platform tactus_op), on the host's other cores");
}

// "auto" as kAutoLanes, or a number.
CLI::Validator LaneCount() {
  return {[](std::string& text) {
            if (text == "auto") {
              text = std::to_string(kAutoLanes);
              return std::string();
            }
            return CLI::Range(1, 4096)(text);
          },
          "", "LaneCount"};
}

void DeclareLanes(ServeOptions& o, CLI::App& command) {
  command.option_defaults()->group("Scheduling");
  command
      .add_option(
          "--lanes", o.lanes,
          "Parts of the machine that run batches side by side; auto: as many as its "
          "processors allow, of as many threads as the profile advises (docs/reference/lanes.md). "
          "Where --threads is given and this is not: 1")
      ->transform(LaneCount())
      ->option_text("N|auto")
      ->default_str("auto");
  DeclareHostLanes(o, command);
  AddOption(command, "--slots", o.slots, CLI::Range(1, 64),
            "Batches at once in each lane; they slow each other down, which strait predicts");
  AddOption(command, "--threads", o.threads, CLI::Range(1, 1024),
            "Threads of the engine that run one batch; profile with the same number. Without "
            "this, --lanes auto chooses them, and --lanes N has 1")
      ->option_text("N")
      ->default_str("");
  command.add_flag(
      "--pin,!--no-pin", o.pin,
      "Pin each lane to cores of its own, one for each thread of its slots, if there are "
      "enough");
  AddOption(command, "--spin-us", o.spin_us, CLI::Range(0, 1'000'000),
            "Microseconds for which an idle thread looks for work before it sleeps");
}

void DeclarePredictor(ServeOptions& o, CLI::App& command) {
  command.option_defaults()->group("Scheduling");
  AddOption(command, "--predictor", o.predictor, ReadFile(),
            "Start from what the policy learnt in an earlier run with these models on this "
            "machine (strait)");
  AddOption(command, "--save-predictor", o.save_predictor, KeptFile(),
            "Write what the policy has learnt to this file when the server stops (strait)");
}

void DeclareAccess(ServeOptions& o, CLI::App& command) {
  command.add_option(
      "--address", o.address,
      "Address to listen on; beyond this machine it needs TLS and tokens, or --insecure");
  const auto file = [&](const char* name, std::string& value, const char* what) {
    command.add_option(name, value, what)->check(ReadFile());
  };
  file("--tls-cert", o.tls_cert,
       "Certificate (PEM) for clients on all three ports; read again when it changes");
  file("--tls-key", o.tls_key, "Its private key (PEM)");
  file("--tls-client-ca", o.tls_client_ca,
       "Serve only clients with a certificate of this authority");
  file("--tokens", o.tokens,
       "Who may do what: NAME infer,read,admin TOKEN on each line (docs/reference/security.md)");
  command.add_flag("--insecure", o.insecure,
                   "Listen beyond this machine without TLS or without tokens");
  command
      .add_option(
          "--admin-socket", o.admin_socket,
          "Unix socket with KServe v2 over gRPC, without TLS or tokens, for whoever may open "
          "it: its folder must be this user's alone")
      ->option_text("PATH");
}

void DeclareNetwork(ServeOptions& o, CLI::App& command) {
  command.option_defaults()->group("Network");
  DeclareAccess(o, command);
  const auto port = [&](const char* name, std::uint16_t& value, const char* what) {
    command.add_option(name, value, std::string(what) + "; 0: any free port")
        ->check(CLI::Range(0, 65535));
  };
  port("--http-port", o.http_port, "KServe v2 over REST");
  port("--grpc-port", o.grpc_port, "KServe v2 over gRPC, health and reflection");
  port("--metrics-port", o.metrics_port, "Prometheus metrics at /metrics");
  AddOption(command, "--grpc-ping-s", o.grpc_ping_s, CLI::Range(0.01, 7200.0),
            "Least interval of a gRPC client's keepalive pings; one that pings more often is "
            "closed (too_many_pings)");
  AddOption(command, "--http-threads", o.http_threads, CLI::Range(1, 256),
            "Threads that read and write HTTP, and as many for gRPC");
  command
      .add_option("--client-limits", o.client_limits,
                  "Limits for each client: calls= and mb= under way, rate= calls per second, "
                  "connections= over HTTP (default: three quarters of the server's, and any rate)")
      ->option_text("NAME=N,...");
  command
      .add_option(
          "--objective", o.objectives,
          "Priority of calls that carry this name in x-llm-d-inference-objective and state no "
          "priority of their own; the option again for each name")
      ->option_text("NAME=PRIORITY ...")
      ->allow_extra_args(false)
      ->default_str("");
  AddOption(command, "--max-body-mb", o.max_body_mb, CLI::Range(1, 2047),
            "Largest body of a call in megabytes, also after unpacking");
  command.add_flag("--strict-triton", o.strict_triton,
                   "Answer with Triton's status codes and texts where they differ from ours");
  command.add_option("--strict-readiness", o.strict_readiness,
                     "false: ready though a model that should serve does not");
  command.add_flag("--triton-metrics", o.triton_metrics,
                   "Give Triton's nv_inference_* metrics too");
}

// What [autoscale] says in a scenario, for `tactus simulate`; `most` is its [lanes] count.
void DeclareAutoscale(ServeOptions& o, CLI::App& command) {
  command.option_defaults()->group(
      "Autoscale advice (metrics tactus_autoscale_*, and KEDA over gRPC)");
  AddOption(command, "--autoscale-interval-seconds", o.autoscale_interval_s,
            CLI::Range(0.0, 3600.0), "How often the advice is worked out; 0: never");
  AddOption(command, "--autoscale-window-seconds", o.autoscale_window_s, CLI::Range(1e-3, 1e6),
            "Averaging window of the advice; no lane is given back before one has passed");
  AddOption(command, "--autoscale-least", o.autoscale.least, CLI::Range(1, 1 << 20),
            "Never fewer lanes than these");
  AddOption(command, "--autoscale-most", o.autoscale.most, CLI::Range(1, 1 << 20),
            "Never more lanes than these");
  AddOption(command, "--autoscale-bad-threshold", o.autoscale.bad_threshold, CLI::Range(0.0, 0.999),
            "Lanes are added when the violation ratio exceeds this");
  AddOption(command, "--autoscale-idle-threshold", o.autoscale.idle_threshold,
            CLI::Range(0.0, 0.999),
            "Lanes are given back when they are idle for more than this fraction of the time");
  AddOption(command, "--autoscale-idle-kept", o.autoscale.idle_kept, CLI::Range(0.0, 0.999),
            "The idle fraction that is kept when lanes are given back, as room for a rise");
}

void DeclareSite(ServeOptions& o, CLI::App& command) {
  command.option_defaults()->group("Site (docs/reference/site.md)");
  command
      .add_option("--schedulers", o.schedulers,
                  "Serve as a worker of the site with these central schedulers, HOST:PORT; every "
                  "process needs the same list in the same order")
      ->delimiter(',')
      ->option_text(kCommaList)
      ->excludes("--plan")
      ->excludes("--planner")
      ->default_str("");
  command
      .add_option("--worker-name", o.worker_name,
                  "Name of this worker in the site (default: of the host and the process). With "
                  "--peer-tls it begins with the node's name: NODE/...")
      ->needs("--schedulers");
  command
      .add_option(
          "--advertise", o.advertise,
          "HOST:PORT where the site's front ends reach this worker, if that is not --peer-listen")
      ->needs("--schedulers");
}

void DeclarePeerTls(ServeOptions& o, CLI::App& command) {
  AddOption(command, "--peer-tls", o.peer_tls, CLI::ExistingDirectory,
            "Folder with authority.pem, node.pem and node.key (`tactus cluster certificate`): the "
            "certificate for the other processes of a site or cluster; clients see --tls-cert");
}

void DeclareCluster(ServeOptions& o, CLI::App& command, const char* peers) {
  command.option_defaults()->group("Cluster (docs/reference/cluster.md)");
  DeclarePeerTls(o, command);
  command.add_option("--peer-listen", o.peer_listen, peers);
  command
      .add_option(
          "--routes", o.routes,
          "File that says where the steps of pipelines run, written by `tactus agent`; read again "
          "whenever it changes")
      ->check(ReadFile());
}

void DeclareWatchdog(ServeOptions& o, CLI::App& command) {
  command.option_defaults()->group("Scheduling");
  AddOption(command, "--watchdog-s", o.watchdog_s, CLI::Range(0.001, 86'400.0),
            "A batch counts as a run without end after this many seconds at the earliest");
  AddOption(command, "--watchdog-multiple", o.watchdog_multiple, CLI::Range(0, 1'000'000),
            "A batch counts as a run without end after this many times its profiled time, and "
            "no sooner than --watchdog-s; its lane serves nothing until the run ends. 0: never");
}

void DeclareIsolation(ServeOptions& o, CLI::App& command) {
  command.option_defaults()->group("Models");
  command
      .add_flag("--isolate", o.isolate,
                "Run each lane's models in a process of its own: a graph that crashes ends that "
                "process and not the server. Not with --device, --plan, --planner, --slots above "
                "1 or --engine emulated (docs/reference/isolation.md)")
      ->excludes("--plan")
      ->excludes("--planner");
}

void DeclareHeld(ServeOptions& o, CLI::App& command) {
  command.option_defaults()->group("Scheduling");
  AddOption(command, "--queue-capacity", o.queue_capacity, CLI::Range(1, 1'000'000),
            "Rows that may wait for one model");
  AddOption(command, "--call-capacity", o.call_capacity, CLI::Range(1, 1'000'000),
            "Calls under way, of all models together");
  AddOption(
      command, "--pending-mb", o.pending_mb, CLI::Range(1, 1 << 20),
      "Megabytes that all calls together may hold: inputs from their first byte, answers until "
      "their last byte is written; beyond them new calls are refused");
}

void DeclarePage(ServeOptions& o, CLI::App& command) {
  command.add_flag("--ui,!--no-ui", o.ui, "The live page at /ui of the HTTP port");
}

void DeclareEnd(ServeOptions& o, CLI::App& command) {
  DeclareConfigFile(command);
  AddOption(command, "--trace-file", o.trace_file, KeptFile(),
            "Write traces of calls to this file, once a client asks for them with "
            "/v2/trace/setting");
  command
      .add_option("--otlp", o.otlp,
                  "Send spans of calls to this collector of OpenTelemetry (http://HOST:4318): of "
                  "callers that say traceparent, those that they record; of others, as "
                  "/v2/trace/setting says")
      ->excludes("--trace-file");
  AddOption(command, "--grace-seconds", o.grace_s, CLI::Range(0.0, 1e6),
            "On SIGTERM: how long calls under way may take to end");
  AddOption(command, "--log-level", o.log_level,
            CLI::IsMember({"debug", "info", "warning", "error", "off"}), "On standard error");
  AddOption(command, "--log-format", o.log_format, CLI::IsMember({"text", "json"}),
            "Of each line: text, or json, an object");
}

// Sorts the options, once all are declared, for the help alone: kUsual, which most people set, come
// first, and kMore, for experts and experiments, show in --help-all only. The others stay in the
// groups in which they were declared.
void Arrange(CLI::App& command) {
  constexpr std::array kUsual = {"--models", "--profile",   "--default-slo-ms", "--device",
                                 "--lanes",  "--http-port", "--grpc-port",      "--address"};
  constexpr std::string_view kMore =
      "--engine --onnxruntime --percentile --jitter-ms --follow --allow-other-machine "
      "--on-share --device-memory-mb --host-lanes --slots --pin --spin-us --queue-capacity "
      "--ui --predictor --save-predictor --watchdog-s --watchdog-multiple --admin-socket "
      "--grpc-ping-s --http-threads --objective --strict-readiness --worker-name --advertise "
      "--routes --autoscale-interval-seconds --autoscale-window-seconds --autoscale-least "
      "--autoscale-most --autoscale-bad-threshold --autoscale-idle-threshold "
      "--autoscale-idle-kept --trace-file --streams";
  for (const char* name : kUsual) {
    if (CLI::Option* option = command.get_option_no_throw(name)) option->group(kUsualOptions);
  }
  for (const auto name : std::views::split(kMore, ' ')) {
    CLI::Option* option = command.get_option_no_throw(std::string(name.begin(), name.end()));
    if (option != nullptr) option->group(option->get_group() + kMoreOptions);
  }
  command.set_help_all_flag("--help-all", "Print all options and exit")->group(kPlain);
}

}  // namespace

CLI::Validator DeviceName() {
  return {[](const std::string& text) {
            const auto devices = ParseDevices(text);
            return devices ? std::string() : devices.error().message;
          },
          "", "DeviceName"};
}

void Declare(ServeOptions& o, CLI::App& command) {
  o.lanes = kUnsaid;
  o.threads = kUnsaid;
  command.option_defaults()->always_capture_default();
  DeclareModels(o, command);
  DeclareScheduling(o, command);
  DeclareLanes(o, command);
  DeclareHeld(o, command);
  DeclareWatchdog(o, command);
  DeclarePlans(o, command);
  DeclareIsolation(o, command);
  DeclareSite(o, command);
  DeclareCluster(o, command,
                 "With --peer-tls or --schedulers: HOST:PORT that takes rows from the site's front "
                 "ends and pipeline steps from other nodes; port 0: any free one");
  DeclarePredictor(o, command);
  DeclareNetwork(o, command);
  DeclareAutoscale(o, command);
  command.option_defaults()->group(kPlain);
  DeclarePage(o, command);
  AddOption(command, "--journal", o.journal, KeptFile(),
            "Record every event and decision in this file, for `tactus replay`");
  AddOption(command, "--streams", o.streams, KeptFile(),
            "Keep the video streams of /v2/streams in this file: a restart has them again");
  DeclareEnd(o, command);
  Arrange(command);
}

void DeclareFrontEnd(ServeOptions& o, CLI::App& command) {
  command.option_defaults()->always_capture_default();
  command.option_defaults()->group("Models");
  AddOption(command, "--models", o.models, CLI::ExistingDirectory,
            "Repository whose pipelines and host operators run in this front end and call "
            "the site's models; repeatable; without it, only the site's models are served")
      ->allow_extra_args(false)
      ->default_str("");
  DeclareControl(o, command);
  DeclareHostLanes(o, command);
  DeclareHeld(o, command);
  DeclareCluster(o, command,
                 "With --peer-tls: HOST:PORT that takes pipeline steps from other nodes; port 0: "
                 "any free one");
  DeclareNetwork(o, command);
  command.option_defaults()->group(kPlain);
  DeclarePage(o, command);
  DeclareEnd(o, command);
  Arrange(command);
}

}  // namespace tactus
