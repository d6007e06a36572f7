#include "cluster/control/worker_ports.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "base/host_port.h"

namespace tactus {
namespace {

constexpr const char* kWhose = "an option after --: ";

using Named = std::pair<std::string_view, std::uint16_t WorkerPorts::*>;
constexpr std::array kPorts = {Named{"--http-port", &WorkerPorts::http},
                               Named{"--grpc-port", &WorkerPorts::grpc},
                               Named{"--metrics-port", &WorkerPorts::metrics}};

std::optional<std::uint16_t> PortIn(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port;
}

// The option's name, where the argument is one: --name or --name=VALUE.
std::string_view NameIn(std::string_view argument) {
  return argument.starts_with("--") ? argument.substr(0, argument.find('=')) : "";
}

Status TwoUses(const WorkerPorts& ports) {
  for (auto one = kPorts.begin(); one != kPorts.end(); ++one) {
    const std::uint16_t port = ports.*(one->second);
    const auto same = std::find_if(one + 1, kPorts.end(), [&](const Named& other) {
      return port != 0 && ports.*(other.second) == port;
    });
    if (same == kPorts.end()) continue;
    return InvalidArgument(kWhose + std::string(one->first) + " and " + std::string(same->first) +
                           " are both " + std::to_string(port) + "; give each its own port");
  }
  return {};
}

}  // namespace

Expected<WorkerPorts> TakeWorkerPorts(std::vector<std::string>& arguments,
                                      const std::vector<std::string>& own) {
  WorkerPorts ports;
  std::vector<std::string> others;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const std::string name(NameIn(argument));
    if (std::ranges::find(own, name) != own.end()) {
      return InvalidArgument(kWhose + name +
                             " is the agent's to give; name it before -- (`tactus agent --help`)");
    }
    const auto port = std::ranges::find(kPorts, std::string_view(name), &Named::first);
    if (port == kPorts.end()) {
      others.push_back(argument);
      continue;
    }
    const bool joined = argument.size() > name.size();
    if (!joined) ++i;
    const std::string value = joined                 ? argument.substr(name.size() + 1)
                              : i < arguments.size() ? arguments[i]
                                                     : "";
    const auto read = PortIn(value);
    if (!read) {
      return InvalidArgument(kWhose + name + " '" + value +
                             "' is no port: write 1 to 65535, or 0 for any free one");
    }
    ports.*(port->second) = *read;
  }
  if (Status fine = TwoUses(ports); !fine) return std::unexpected(std::move(fine.error()));
  arguments = std::move(others);
  return ports;
}

Expected<PeerAddress> ParsePeerAddress(const std::string& text) {
  const auto wrong = [&] {
    return InvalidArgument("--peer-address '" + text +
                           "' is not HOST or HOST:PORT (of an IPv6 address [HOST]:PORT)");
  };
  if (const auto place = ParseHostPort(text)) {
    return PeerAddress{.host = Bracketed(place->host), .port = place->port};
  }
  if (!ParseHostPort(Bracketed(text) + ":0")) return wrong();
  return PeerAddress{.host = text};
}

WorkerPorts PortsToStartWith(const WorkerPorts& named, const KeptWorker& last) {
  const auto one = [](std::uint16_t want, std::uint16_t had) { return want != 0 ? want : had; };
  return {.http = one(named.http, last.http),
          .grpc = one(named.grpc, last.grpc),
          .metrics = one(named.metrics, last.metrics),
          .peer = one(named.peer, last.peer)};
}

bool HasPorts(const KeptWorker& worker, const WorkerPorts& named) {
  const WorkerPorts has{worker.http, worker.grpc, worker.metrics, worker.peer};
  return PortsToStartWith(named, worker) == has;
}

}  // namespace tactus
