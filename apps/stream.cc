// tactus stream: sends the frames of cameras and recordings to a pipeline, newest first, and prints
// what it answers.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "commands.h"
#include "output_file.h"
#include "serving/stop_signals.h"
#include "stream/answer_json.h"
#include "stream/remote_sink.h"
#include "stream/stream_runner.h"

namespace tactus {
namespace {

struct StreamFlags {
  std::vector<std::string> sources;
  RemoteServer server{.url = "127.0.0.1:8001", .ca = {}, .token_file = {}};
  std::string model;
  StreamConfig config;
  // As on the command line.
  double slo = 0;  // milliseconds
  double reconnect_s = 1;
  double timeout_s = 5;
  double duration_s = 0;
  bool as_answered = false;
  bool quiet = false;
};

// "door=rtsp://camera/1" has a name; what has none is called by its place.
std::pair<std::string, std::string> NamedSource(const std::string& text, std::size_t place) {
  const std::size_t equals = text.find('=');
  if (equals != text.npos && IsStreamName(std::string_view(text).substr(0, equals))) {
    return {text.substr(0, equals), text.substr(equals + 1)};
  }
  return {fmt::format("stream{}", place + 1), text};
}

// The lines of all streams, each whole.
class Lines {
 public:
  void Print(const std::string& line) {
    const std::lock_guard lock(mutex_);
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
    std::fflush(stdout);
    lost_ = lost_ || std::ferror(stdout) != 0;
  }
  // Nobody reads any more.
  bool lost() const {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

 private:
  mutable std::mutex mutex_;
  bool lost_ = false;
};

using Runners = std::vector<std::unique_ptr<StreamRunner>>;

Expected<Runners> MakeRunners(const StreamFlags& flags, Lines& lines) {
  Runners runners;
  for (std::size_t i = 0; i < flags.sources.size(); ++i) {
    auto [name, source] = NamedSource(flags.sources[i], i);
    for (const auto& other : runners) {
      if (other->name() != name) continue;
      return InvalidArgument(
          fmt::format("{}: another stream is called '{}' too; name this one: NAME=SOURCE",
                      flags.sources[i], name));
    }
    if (Status known = CheckSource(source); !known) return std::unexpected(known.error());
    if (std::error_code gone; !IsLive(source) && !std::filesystem::exists(source, gone)) {
      return NotFound(source +
                      ": there is no such file; name one, or an rtsp, rtsps, http or "
                      "https URL");
    }
    // A connection for each: none waits behind another's frames.
    auto sink = MakeRemoteSink(flags.server, flags.model);
    if (!sink) return std::unexpected(sink.error());
    StreamConfig config = flags.config;
    config.source = {source, FromSeconds(flags.timeout_s)};
    config.model = flags.model;
    config.server = flags.server;
    config.flow.slo = FromMillis(flags.slo);
    config.reconnect.interval = FromSeconds(flags.reconnect_s);
    config.realtime = !flags.as_answered;
    StreamParts parts{.sink = *sink, .on_answer = {}};
    if (!flags.quiet) {
      parts.on_answer = [&lines](const AnsweredFrame& frame) { lines.Print(ToJsonLine(frame)); };
    }
    runners.push_back(std::make_unique<StreamRunner>(std::move(name), config, std::move(parts)));
  }
  return runners;
}

bool Over(const StreamRunner& runner) {
  const StreamState state = runner.reading().state;
  return state == StreamState::kEnded || state == StreamState::kFailed;
}

void PrintTable(const Runners& runners) {
  fmt::print(stderr, "\n{:<16} {:<10} {:>7} {:>7} {:>7} {:>9} {:>9}  dropped\n", "stream", "state",
             "read", "served", "late", "p50 ms", "p99 ms");
  for (const auto& runner : runners) {
    const StreamReading reading = runner->reading();
    std::string dropped;
    for (std::size_t i = 0; i < kFrameEnds; ++i) {
      const auto end = static_cast<FrameEnd>(i);
      if (end == FrameEnd::kServed || end == FrameEnd::kLate || reading.counts.of(end) == 0) {
        continue;
      }
      const FrameEndName name = Name(end);
      dropped += fmt::format("{}{} {} {}", dropped.empty() ? "" : ", ", reading.counts.of(end),
                             name.stage, name.reason);
    }
    fmt::print(stderr, "{:<16} {:<10} {:>7} {:>7} {:>7} {:>9.1f} {:>9.1f}  {}\n", runner->name(),
               Name(reading.state), reading.counts.read, reading.counts.of(FrameEnd::kServed),
               reading.counts.of(FrameEnd::kLate), ToMillis(reading.latency_p50),
               ToMillis(reading.latency_p99), dropped.empty() ? "none" : dropped);
    if (!reading.error.empty()) fmt::print(stderr, "{:<16} {}\n", "", reading.error);
  }
}

int Run(const StreamFlags& flags) {
  if (!CanReadVideo()) {
    return ReportBadInput(OpenVideo({.source = flags.sources.front()}, {}).error());
  }
  StopSignals signals;  // before anything starts a thread
  Lines lines;
  auto made = MakeRunners(flags, lines);
  if (!made) return ReportBadInput(made.error());
  Runners& runners = *made;
  for (auto& runner : runners) {
    if (Status started = runner->Start(); !started) return ReportBadInput(started.error());
  }
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  const auto over = [&] {
    const std::chrono::duration<double> passed = Clock::now() - began;
    return lines.lost() || (flags.duration_s > 0 && passed.count() >= flags.duration_s) ||
           std::ranges::all_of(runners, [](const auto& runner) { return Over(*runner); });
  };
  while (!over() && !signals.CameWithin(std::chrono::milliseconds(50))) continue;
  bool failed = false;
  for (auto& runner : runners) runner->AskToStop();
  for (auto& runner : runners) runner->Stop();
  for (const auto& runner : runners) {
    const StreamReading reading = runner->reading();
    failed = failed || reading.state == StreamState::kFailed ||
             reading.counts.of(FrameEnd::kServed) + reading.counts.of(FrameEnd::kLate) == 0;
    lines.Print(ToJson(runner->name(), runner->config(), reading));
  }
  PrintTable(runners);
  return failed ? 1 : 0;
}

void DeclareFlow(StreamFlags& flags, CLI::App& command) {
  AddOption(command, "--fps", flags.config.flow.most_rate, CLI::Range(0.0, 1000.0),
            "most frames a second; 0: as many as come")
      ->capture_default_str();
  AddOption(command, "--every", flags.config.flow.every, CLI::Range(1, 100'000),
            "take only every n-th frame")
      ->capture_default_str();
  AddOption(command, "--queue", flags.config.flow.queue, CLI::Range(1, 64),
            "most frames that wait; the newest goes first, the oldest is dropped")
      ->capture_default_str();
  AddOption(command, "--in-flight", flags.config.flow.in_flight, CLI::Range(1, 100'000),
            "most frames of a stream at the server at once")
      ->capture_default_str();
  AddOption(command, "--slo-ms", flags.slo, CLI::Range(0.0, 600'000.0),
            "time from capture to answer; 0: the pipeline's slo_ms, or 1 s where it states none")
      ->capture_default_str();
}

}  // namespace

void AddStream(CLI::App& app, CommandContext& context) {
  const auto flags = std::make_shared<StreamFlags>();
  CLI::App* command = app.add_subcommand(
      "stream", "Send the frames of cameras and recordings to a pipeline, and print its answers");
  command
      ->add_option("sources", flags->sources,
                   "a file, or an rtsp, rtsps, http or https URL; NAME=SOURCE names the stream")
      ->required();
  command->add_option("--url", flags->server.url, "HOST:PORT of the server's gRPC")
      ->capture_default_str();
  AddOption(*command, "--ca", flags->server.ca, ReadFile(),
            "speak TLS; trust server certificates that one of these (PEM) has signed");
  AddOption(*command, "--token-file", flags->server.token_file, ReadFile(),
            "a file whose first line is the bearer token for the server");
  command->add_option("--model", flags->model, "a model or pipeline that takes a JPEG")->required();
  DeclareFlow(*flags, *command);
  AddOption(*command, "--reconnect-s", flags->reconnect_s, CLI::Range(0.05, 3600.0),
            "seconds before a lost source is tried again; they double as long as no frame comes")
      ->capture_default_str();
  AddOption(*command, "--attempts", flags->config.reconnect.attempts, CLI::Range(0, 1'000'000),
            "attempts in a row without a frame after which a source is given up; 0: never")
      ->capture_default_str();
  AddOption(*command, "--timeout-s", flags->timeout_s, CLI::Range(0.1, 3600.0),
            "a source without a frame for this many seconds counts as lost")
      ->capture_default_str();
  command->add_flag("--loop", flags->config.loop, "begin a file again at its end");
  command->add_flag("--as-answered", flags->as_answered,
                    "read a file as fast as its frames are answered, and answer each");
  AddOption(*command, "--duration", flags->duration_s, NotBelowZero(),
            "stop after this many seconds; 0: at the end")
      ->capture_default_str();
  command->add_flag("--quiet", flags->quiet, "no line for each frame, only the counts");
  command->callback([flags, &context] { context.exit_code = Run(*flags); });
}

}  // namespace tactus
