#include "load/front_cost.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <regex>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "load/load_run.h"
#include "load/transport.h"
#include "platform/process.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

// Numbers in a row of each model.
constexpr std::array kSizes{1024, 262'144};
constexpr int kCallers = 4;
constexpr std::chrono::seconds kStartLimit{30};

std::string NameOf(int numbers) { return fmt::format("f{}", numbers); }

// A server of two models that take next to no time, and its files.
class Served {
 public:
  Served() = default;
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  ~Served() {
    if (process_.pid != 0) StopProcess(process_, std::chrono::seconds(5));
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
  }

  // Returns the port.
  Expected<int> Start(const fs::path& program, const std::string& protocol) {
    folder_ = fs::temp_directory_path() / fmt::format("tactus-front-{}", UniqueNumber());
    std::string profiled;
    for (const int numbers : kSizes) {
      const std::string name = NameOf(numbers);
      fs::create_directories(folder_ / "models" / name / "1");
      std::ofstream(folder_ / "models" / name / "config.pbtxt") << fmt::format(
          "name: \"{}\"\nplatform: \"emulated\"\nmax_batch_size: 1\n"
          "input [ {{ name: \"x\" data_type: TYPE_FP32 dims: [ {} ] }} ]\n"
          "output [ {{ name: \"y\" data_type: TYPE_FP32 dims: [ 10 ] }} ]\n",
          name, numbers);
      profiled +=
          fmt::format(R"({}{{"name": "{}", "max_batch": 1, "exits": [{{"name": "1", "cells": [)"
                      R"({{"batch": 1, "mean_ms": 0.01}}]}}]}})",
                      profiled.empty() ? "" : ", ", name);
    }
    std::ofstream(folder_ / "profile.json") << fmt::format(
        R"({{"tactus_profile": 1, "machine": {{"fingerprint": "none"}}, "provenance": )"
        R"("made up", "models": [{}]}})",
        profiled);
    const fs::path log = folder_ / "log";
    auto process =
        StartProcess({program.string(), "serve", "--models", (folder_ / "models").string(),
                      "--profile", (folder_ / "profile.json").string(), "--allow-other-machine",
                      "--http-port", "0", "--grpc-port", "0", "--metrics-port", "0"},
                     log);
    if (!process) return std::unexpected(std::move(process.error()));
    process_ = *process;
    const std::regex ready(protocol + "=([0-9]+)");
    const auto until = std::chrono::steady_clock::now() + kStartLimit;
    while (std::chrono::steady_clock::now() < until && Runs(process_)) {
      const std::string text = Said(log);
      std::smatch port;
      const auto line = text.find("ready http=");
      if (line != text.npos && text.find('\n', line) != text.npos) {
        const std::string said = text.substr(line);
        if (std::regex_search(said, port, ready)) return std::stoi(port[1]);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return Fail(ErrorCode::kUnavailable,
                "the server that is to be measured does not start: " + Said(log));
  }

  // Nanoseconds that its I/O threads have run.
  std::int64_t IoTime() const {
    std::int64_t sum = 0;
    std::error_code error;
    for (const auto& task :
         fs::directory_iterator(fmt::format("/proc/{}/task", process_.pid), error)) {
      if (!Said(task.path() / "comm").starts_with("io-")) continue;
      std::int64_t ns = 0;
      std::ifstream(task.path() / "schedstat") >> ns;
      sum += ns;
    }
    return sum;
  }

 private:
  static std::string Said(const fs::path& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path folder_;
  ProcessIdentity process_;
};

// Nanoseconds for a call of this model.
Expected<double> CostOf(const Served& served, const TransportOptions& to,
                        const FrontCostOptions& options, int numbers) {
  auto transport = MakeTransport(options.protocol, to);
  if (!transport) return std::unexpected(std::move(transport.error()));
  const std::int64_t before = served.IoTime();
  const auto run = RunClosedLoop(
      **transport, {.models = {{.name = NameOf(numbers)}},
                    .concurrency = kCallers,
                    .warmup = std::chrono::milliseconds(0),
                    .duration = std::chrono::milliseconds(std::lround(1e3 * options.seconds))});
  if (!run) return std::unexpected(run.error());
  if (run->models[0].answered == 0) {
    return Fail(ErrorCode::kUnavailable, "no call was answered: " + run->first_error);
  }
  return static_cast<double>(served.IoTime() - before) /
         static_cast<double>(run->models[0].answered);
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

Expected<FrontCost> MeasureFront(const FrontCostOptions& options,
                                 const std::function<void(double)>& progress) {
  Served served;
  const auto port = served.Start(options.program, options.protocol);
  if (!port) return std::unexpected(port.error());
  const TransportOptions to{.url = fmt::format("127.0.0.1:{}", *port)};
  std::array<std::vector<double>, kSizes.size()> costs;
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < kSizes.size(); ++i) {
      const auto cost = CostOf(served, to, options, kSizes[i]);
      if (!cost) return std::unexpected(cost.error());
      costs[i].push_back(*cost);
    }
    progress((round + 1.0) / options.rounds);
  }
  const double few = Median(costs[0]);
  const double bytes = sizeof(float) * (kSizes[1] - kSizes[0]);
  const double byte_ns = std::max((Median(costs[1]) - few) / bytes, 0.0);
  const double call_ns = few - byte_ns * sizeof(float) * kSizes[0];
  return FrontCost{.call_us = std::max(call_ns, 0.0) * 1e-3, .byte_ns = byte_ns};
}

}  // namespace tactus
