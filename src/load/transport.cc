#include "load/transport.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/host_port.h"
#include "base/server_trust.h"

namespace tactus {
namespace {

std::vector<std::string_view> SplitList(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    parts.push_back(part);
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::optional<double> ParseNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// As the server names them where nobody else does: 1, 2, 3.
void Resize(Model& model, std::size_t exits) {
  while (model.exits.size() < exits) {
    model.exits.push_back({std::to_string(model.exits.size() + 1), 0});
  }
}

}  // namespace

Expected<Endpoint> ParseUrl(std::string_view url) {
  const std::string whole(url);
  std::optional<bool> tls;
  constexpr std::pair<std::string_view, bool> kSchemes[] = {
      {"http://", false}, {"grpc://", false}, {"https://", true}, {"grpcs://", true}};
  for (const auto& [scheme, secret] : kSchemes) {
    if (!url.starts_with(scheme)) continue;
    url.remove_prefix(scheme.size());
    tls = secret;
    break;
  }
  url = url.substr(0, url.find('/'));
  const auto place = ParseHostPort(url);
  if (!place || place->port == 0) {
    return InvalidArgument(fmt::format(
        "'{}': expected host:port, as in 127.0.0.1:8000, or [::1]:8000 of an IPv6 address", whole));
  }
  return Endpoint{*place, tls};
}

Expected<TargetServer> TargetOf(const TransportOptions& options) {
  auto endpoint = ParseUrl(options.url);
  if (!endpoint) return std::unexpected(std::move(endpoint.error()));
  const bool tls = !options.ca.empty();
  if (endpoint->tls == true && !tls) {
    return InvalidArgument(fmt::format(
        "'{}': TLS needs the certificates of which one has signed the server's: --ca FILE (those "
        "that a Debian trusts are in /etc/ssl/certs/ca-certificates.crt)",
        options.url));
  }
  if (endpoint->tls == false && tls) {
    return InvalidArgument(
        fmt::format("'{}' is in the clear, and --ca is for TLS: write https://, or leave one out",
                    options.url));
  }
  TargetServer server{.endpoint = *std::move(endpoint), .roots = {}, .token = {}};
  if (tls) {
    auto roots = ReadAuthorities(options.ca);
    if (!roots) return std::unexpected(std::move(roots.error()));
    server.roots = *std::move(roots);
  }
  if (!options.token_file.empty()) {
    auto token = ReadToken(options.token_file, server.endpoint.place, tls);
    if (!token) return std::unexpected(std::move(token.error()));
    server.token = *std::move(token);
  }
  return server;
}

std::string AccessRemedy(const TransportOptions& options, bool knows_not) {
  if (options.token_file.empty()) return "; give a token with --token-file FILE";
  if (knows_not) return "; the server does not know the token in " + options.token_file;
  return fmt::format("; the token in {} needs the scopes read and infer", options.token_file);
}

bool ApplyParameter(Model& model, std::string_view key, std::string_view value) {
  if (key == "slo_ms") {
    const auto slo = ParseNumber(value);
    if (!slo || *slo < 0) return false;
    model.slo = FromMillis(*slo);
  } else if (key == "priority") {
    const auto priority = ParseNumber(value);
    if (!priority || *priority < 0) return false;
    model.priority = static_cast<int>(*priority);
  } else if (key == "exits") {
    Resize(model, SplitList(value).size());
  } else if (key == "exit_names") {
    const auto names = SplitList(value);
    Resize(model, names.size());
    for (std::size_t i = 0; i < names.size(); ++i) model.exits[i].name = names[i];
  } else if (key == "accuracy") {
    const auto values = SplitList(value);
    Resize(model, values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto accuracy = ParseNumber(values[i]);
      if (!accuracy) return false;
      model.exits[i].accuracy = *accuracy;
    }
  }
  return true;
}

Expected<std::unique_ptr<Transport>> MakeTransport(std::string_view protocol,
                                                   const TransportOptions& options) {
  if (protocol == "http") return MakeHttpTransport(options);
  if (protocol == "grpc") return MakeGrpcTransport(options);
  return InvalidArgument(fmt::format("protocol '{}': choose http or grpc", protocol));
}

}  // namespace tactus
