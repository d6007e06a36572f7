#include "cluster/control/worker.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "platform/process.h"
#include "platform/repeated_task.h"

namespace tactus {
namespace {

// Whether they say which lanes there are, or name a file that may.
bool StatesLanes(const std::vector<std::string>& arguments) {
  constexpr std::array kNames = {"--lanes",   "--threads", "--plan",
                                 "--planner", "--device",  "--config"};
  return std::ranges::any_of(arguments, [&](const std::string& argument) {
    return std::ranges::count(kNames, argument.substr(0, argument.find('='))) > 0;
  });
}

using std::chrono::milliseconds;

constexpr milliseconds kLook{50};
constexpr milliseconds kStartingEnds{1000};
constexpr milliseconds kOtherEnds{5000};
constexpr milliseconds kStartsWithin{600'000};  // models may be measured when they are loaded

// "ready http=1 grpc=2 metrics=3" after `from` in the log, or "started" where the worker waits for
// models that it is to be given, or for other nodes.
std::optional<KeptWorker> StartedIn(const std::filesystem::path& log, std::uintmax_t from) {
  std::ifstream file(log);
  file.seekg(static_cast<std::streamoff>(from));
  for (std::string line; std::getline(file, line);) {
    if (!(line.starts_with("ready ") || line.starts_with("started ")) || file.eof()) continue;
    KeptWorker kept;
    const std::pair<const char*, std::uint16_t&> ports[] = {{" http=", kept.http},
                                                            {" grpc=", kept.grpc},
                                                            {" metrics=", kept.metrics},
                                                            {" peers=", kept.peer}};
    for (const auto& [key, port] : ports) {
      const auto at = line.find(key);
      const bool optional = &port == &kept.peer;
      if (at == std::string::npos && optional) continue;
      if (at == std::string::npos) return std::nullopt;
      port = static_cast<std::uint16_t>(
          std::strtoul(line.c_str() + at + std::string_view(key).size(), nullptr, 10));
    }
    return kept;
  }
  return std::nullopt;
}

std::string LastLine(const std::filesystem::path& log, std::uintmax_t from) {
  std::ifstream file(log);
  file.seekg(static_cast<std::streamoff>(from));
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

}  // namespace

struct Worker::Body {
  Body(WorkerOptions given, WorkerEvents told)
      : options(std::move(given)), events(std::move(told)) {
    log = options.state / "worker.log";
    thread = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  }

  void Run(const std::stop_token& stop) {
    milliseconds pause = options.first_pause;
    int early = 0;
    std::optional<KeptWorker> last = ReadWorker(options.state);
    if (last && Runs(last->process)) {
      // One that was still starting when its agent ended: nobody knows its ports. Another's
      // repository: it would not find what is placed. Other ports: clients would not find it. An
      // earlier version's has no socket for its agent.
      std::error_code none;
      const bool fits = last->http != 0 && last->models == Serves() &&
                        HasPorts(*last, options.ports) &&
                        std::filesystem::exists(AdminSocketIn(options.state), none);
      if (!fits) StopProcess(last->process, last->http == 0 ? kStartingEnds : kOtherEnds);
      if (fits) Watch(stop, *last, true);
      if (stop.stop_requested()) return;
      events.down("it ended", false);
    }
    while (!stop.stop_requested()) {
      const auto begun = std::chrono::steady_clock::now();
      bool ready = false;
      const std::string why = Serve(stop, last, ready);
      if (stop.stop_requested()) return;
      const bool proven = ready && std::chrono::steady_clock::now() - begun >= options.proven_after;
      early = proven ? 0 : early + 1;
      if (proven) pause = options.first_pause;
      last = ReadWorker(options.state);
      events.down(why, early >= options.failing_after);
      if (proven) continue;
      SleepUnlessStopped(pause, stop);
      pause = std::min(pause * 2, options.longest_pause);
    }
  }

  std::string Schedulers() const {
    std::string all;
    for (const std::string& each : options.schedulers) all += (all.empty() ? "" : ",") + each;
    return all;
  }
  // One that serves something else is not this node's.
  std::string Serves() const {
    if (options.schedulers.empty()) return options.models.string();
    return options.models.string() + " with the site of " + Schedulers();
  }

  std::vector<std::string> Command(const std::optional<KeptWorker>& last) const {
    const WorkerPorts ports = PortsToStartWith(options.ports, last.value_or(KeptWorker{}));
    std::vector<std::string> command = {options.program.string(),
                                        options.schedulers.empty() ? "serve" : "front-end",
                                        "--models",
                                        options.models.string(),
                                        "--model-control-mode",
                                        "explicit",
                                        "--address",
                                        options.address,
                                        "--http-port",
                                        std::to_string(ports.http),
                                        "--grpc-port",
                                        std::to_string(ports.grpc),
                                        "--metrics-port",
                                        std::to_string(ports.metrics),
                                        "--admin-socket",
                                        AdminSocketIn(options.state).string(),
                                        "--routes",
                                        RoutesIn(options.state).string()};
    if (!options.schedulers.empty()) {
      command.emplace_back("--schedulers");
      command.push_back(Schedulers());
    }
    if (!options.peer_tls.empty()) {
      for (const std::string& each :
           {std::string("--peer-tls"), options.peer_tls.string(), std::string("--peer-listen"),
            options.peer_address + ":" + std::to_string(ports.peer)}) {
        command.push_back(each);
      }
    }
    // A fleet's file says what a device does with its lanes: they must not depend on what the
    // machine has.
    if (options.schedulers.empty() && !StatesLanes(options.arguments)) {
      command.insert(command.end(), {"--lanes", "1"});
    }
    command.insert(command.end(), options.arguments.begin(), options.arguments.end());
    return command;
  }

  // Starts one, on the ports that are named, else of the last if that was ever ready, and watches
  // it to its end; why it ended.
  std::string Serve(const std::stop_token& stop, const std::optional<KeptWorker>& last,
                    bool& was_ready) {
    std::error_code none;
    const auto size = std::filesystem::file_size(log, none);
    const std::uintmax_t from = none ? 0 : size;
    if (Status made = MakeAdminFolder(options.state); !made) return made.error().message;
    const auto process = StartProcess(Command(last), log);
    if (!process) return process.error().message;
    KeptWorker kept{.process = *process, .models = Serves()};
    if (const Status found_again = Write(kept, options.state); !found_again) {
      StopProcess(*process, milliseconds{1000});  // no later agent would find it
      return found_again.error().message;
    }
    {
      const std::scoped_lock lock(mutex);
      running = *process;
    }
    const auto begun = std::chrono::steady_clock::now();
    for (std::optional<KeptWorker> ready; !ready && !stop.stop_requested();) {
      if (EndsWithin(*process, kLook)) return "it did not start: " + LastLine(log, from);
      if (std::chrono::steady_clock::now() - begun > kStartsWithin) {
        StopProcess(*process, milliseconds{1000});
        return "it was not ready in time";
      }
      ready = StartedIn(log, from);
      if (ready) kept = *ready;
      kept.process = *process;
      kept.models = Serves();
    }
    if (stop.stop_requested()) return "";
    was_ready = true;
    if (const Status kept_it = Write(kept, options.state); !kept_it) {
      StopProcess(*process, milliseconds{1000});
      return kept_it.error().message;
    }
    Watch(stop, kept, false);
    return "it ended: " + LastLine(log, from);
  }

  void Watch(const std::stop_token& stop, const KeptWorker& kept, bool adopted) {
    {
      const std::scoped_lock lock(mutex);
      running = kept.process;
    }
    events.up(kept, adopted);
    while (!stop.stop_requested() && !EndsWithin(kept.process, kLook * 2)) {
    }
  }

  const WorkerOptions options;
  const WorkerEvents events;
  std::filesystem::path log;
  std::mutex mutex;
  ProcessIdentity running;  // under the mutex
  std::jthread thread;      // last: it uses the others
};

Worker::Worker(WorkerOptions options, WorkerEvents events)
    : body_(std::make_unique<Body>(std::move(options), std::move(events))) {}

Worker::~Worker() = default;

void Worker::Stop(std::chrono::milliseconds grace) {
  body_->thread = {};
  if (body_->running.pid > 0) StopProcess(body_->running, grace);
}

}  // namespace tactus
