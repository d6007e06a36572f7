// tactus scheduler: the central scheduler of a site, or a spare of it.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/logger.h>

#include "cluster/site/scheduler_server.h"
#include "commands.h"
#include "experiment/experiment.h"
#include "output_file.h"
#include "server/access/access.h"
#include "server/http/http_server.h"
#include "serving/journals.h"
#include "serving/log_queue.h"
#include "serving/patient_sink.h"
#include "serving/peer_port.h"
#include "serving/stop_signals.h"
#include "workload/scenario.h"

namespace tactus {
namespace {

struct SchedulerFlags {
  std::string listen = "127.0.0.1:8100";
  std::string policy{kDefaultPolicy};
  SchedulerServer::Options server;
  std::size_t queue_capacity = 4096;
  double suspect = 30;  // milliseconds
  std::string metrics_address = "127.0.0.1";
  std::uint16_t metrics_port = 8102;
  std::string tls;  // a folder
  std::string journal;
  bool insecure = false;
  std::string log_level = "info";
  std::string log_format = "text";
};

std::string MetricsText(const SiteReading& reading, std::optional<bool> journal_whole) {
  std::string text;
  const auto put = [&](const char* name, const char* type, const char* help, auto value) {
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", name, help, type, value);
  };
  put("tactus_site_leads", "gauge", "1 where this scheduler leads, 0 where it watches",
      reading.leads ? 1 : 0);
  put("tactus_site_term", "gauge", "The term that it leads or follows", reading.term);
  put("tactus_site_peers", "gauge", "Front ends, workers and schedulers that are connected",
      reading.peers);
  put("tactus_site_workers", "gauge", "Workers that it grants lanes of", reading.workers.size());
  put("tactus_site_models", "gauge", "Models that some worker serves", reading.models.size());
  put("tactus_site_waiting_requests", "gauge", "Requests that wait for a grant", reading.waiting);
  put("tactus_site_running_batches", "gauge", "Granted batches that are not done", reading.running);
  put("tactus_site_offers_total", "counter", "Requests that front ends offered", reading.offers);
  put("tactus_site_grants_total", "counter", "Parts of batches granted to front ends",
      reading.grants);
  if (journal_whole) {
    put("tactus_journal_whole", "gauge", "1 while the journal holds all of the term that it is of",
        *journal_whole ? 1 : 0);
  }
  return text;
}

// Where it listens, and which of the list it is.
Expected<SchedulerServer::Options> OptionsOf(const SchedulerFlags& flags) {
  SchedulerServer::Options options = flags.server;
  const std::vector<std::string>& all = options.schedulers;
  auto tls = PeerTls::Open(flags.tls);
  if (!tls) return std::unexpected(tls.error());
  options.tls = *std::move(tls);
  const bool safe = flags.insecure || options.tls.on();
  const auto place = PlaceOf("--listen", flags.listen);
  if (!place) return std::unexpected(place.error());
  options.address = place->host;
  options.port = place->port;
  if (Status fine = safe ? Status() : CheckClear("--listen", flags.listen); !fine) {
    return std::unexpected(fine.error());
  }
  if (Status fine = CheckSchedulers("--schedulers", all, safe); !fine) {
    return std::unexpected(fine.error());
  }
  if (!flags.insecure && !IsThisMachine(flags.metrics_address)) {
    return InvalidArgument(
        fmt::format("--metrics-address {} is beyond this machine, and the page is unencrypted and "
                    "open to everybody: --insecure allows it where the network keeps strangers out",
                    flags.metrics_address));
  }
  const auto self = std::ranges::find(all, flags.listen);
  if (!all.empty() && self == all.end()) {
    return InvalidArgument(
        fmt::format("--listen {} is not in --schedulers {}: name it there as the others do",
                    flags.listen, fmt::join(all, ",")));
  }
  options.rank = static_cast<std::uint32_t>(self - all.begin());
  options.takeover.suspect = FromMillis(flags.suspect);
  options.central.dispatcher.queue_capacity = flags.queue_capacity;
  // The way to the worker and back is in what a granted batch takes.
  options.central.dispatcher.follow.on = true;
  return options;
}

std::unique_ptr<TermJournals> JournalsOf(const SchedulerFlags& flags,
                                         const CentralScheduler::Options& central, Log log) {
  if (flags.journal.empty()) return nullptr;
  JournalHeader header{.policy = flags.policy,
                       .source = "served",
                       .commit = BuildCommit(),
                       .options = central.dispatcher,
                       .lanes = SiteLanes(central.lanes)};
  return std::make_unique<TermJournals>(flags.journal, std::move(header), std::move(log));
}

int RunScheduler(const SchedulerFlags& flags) {
  const std::vector<std::string>& all = flags.server.schedulers;
  StopSignals signals;  // before anything starts a thread
  const LogQueue logs(flags.log_level, flags.log_format);
  const Log log = logs.log();
  auto options = OptionsOf(flags);
  if (!options) return ReportBadInput(options.error());
  if (const auto policy = MakeRealTimePolicy(flags.policy); !policy)
    return ReportBadInput(policy.error());
  options->policy = [policy = flags.policy] { return *MakeRealTimePolicy(policy); };
  options->say = [log](const std::string& line) { log->info("site: {}", line); };
  for (const auto& [option, place] :
       {std::pair("--listen", HostPort{options->address, options->port}),
        std::pair("--metrics-port", HostPort{flags.metrics_address, flags.metrics_port})}) {
    if (Status free = CheckListens(option, place); !free) return ReportBadInput(free.error());
  }
  const auto journals = JournalsOf(flags, options->central, log);
  if (journals) options->journal = [&journals](Term term) { return journals->Begin(term); };
  SchedulerServer server(*std::move(options));
  const auto port = server.Start();
  if (!port) return ReportBadInput(port.error());
  HttpServer page(
      {.address = flags.metrics_address, .port = flags.metrics_port},
      [&] { return MetricsText(server.reading(), journals ? journals->whole() : std::nullopt); },
      nullptr);
  const auto page_port = page.Start();
  if (!page_port) {
    return ReportBadInput(
        {page_port.error().code,
         page_port.error().message + "; choose another --metrics-port (0: any free one)"});
  }
  SayPatiently(fmt::format("tactus scheduler of {} with {}\n\nready scheduler={} metrics={}\n",
                           all.empty() ? flags.listen : fmt::format("{}", fmt::join(all, ", ")),
                           flags.policy, *port, *page_port));
  const char* const signal = signals.Wait([] {});
  log->info("{}: {}", signal, all.size() > 1 ? "a spare takes over" : "stops");
  StopSignals::EndWithin({});
  server.Stop();
  page.Stop(std::chrono::milliseconds(0));
  return 0;
}

}  // namespace

void AddScheduler(CLI::App& app, CommandContext& context) {
  auto f = std::make_shared<SchedulerFlags>();
  CLI::App* command = app.add_subcommand(
      "scheduler",
      "Schedule a site of front ends and workers, or stand by (docs/reference/site.md)");
  command
      ->add_option("--listen", f->listen, "HOST:PORT for front ends, workers and other schedulers")
      ->capture_default_str();
  command
      ->add_option(
          "--schedulers", f->server.schedulers,
          "All schedulers of the site, this one too, HOST:PORT, in the order in which they "
          "take over; none: it is the only one")
      ->delimiter(',')
      ->option_text(kCommaList);
  command->add_option("--policy", f->policy, "Scheduling policy; `tactus policies` lists them")
      ->capture_default_str();
  AddOption(*command, "--most-workers", f->server.central.workers, CLI::Range(1, 1024),
            "Most workers")
      ->capture_default_str();
  AddOption(*command, "--most-lanes", f->server.central.lanes, CLI::Range(1, 65'536),
            "Most lanes, of all workers together")
      ->capture_default_str();
  AddOption(*command, "--queue-capacity", f->queue_capacity, CLI::Range(1, 1'000'000),
            "Requests that may wait for one model")
      ->capture_default_str();
  AddOption(*command, "--suspect-ms", f->suspect, CLI::Range(10.0, 60'000.0),
            "A leader that is silent for this long is suspected, and a spare takes over")
      ->capture_default_str();
  command
      ->add_option("--metrics-address", f->metrics_address,
                   "Where the metrics are; beyond this machine with --insecure")
      ->capture_default_str();
  AddOption(*command, "--metrics-port", f->metrics_port, CLI::Range(0, 65'535),
            "Prometheus metrics at /metrics; 0: any")
      ->capture_default_str();
  AddOption(*command, "--peer-tls", f->tls, CLI::ExistingDirectory,
            "Folder with authority.pem, node.pem and node.key (`tactus cluster "
            "certificate`): the certificate for workers, front ends and other schedulers; "
            "only processes with a certificate of that authority may join the site");
  AddOption(*command, "--journal", f->journal, KeptFile(),
            "Record every event and decision of the current term in this file, for `tactus "
            "replay`; FILE.old has the previous term");
  command->add_flag("--insecure", f->insecure, "Listen beyond this machine, in the clear");
  AddOption(*command, "--log-level", f->log_level,
            CLI::IsMember({"debug", "info", "warning", "error", "off"}), "On standard error")
      ->capture_default_str();
  AddOption(*command, "--log-format", f->log_format, CLI::IsMember({"text", "json"}),
            "Of each line: text, or json, an object")
      ->capture_default_str();
  command->callback([f, &context] { context.exit_code = RunScheduler(*f); });
}

}  // namespace tactus
