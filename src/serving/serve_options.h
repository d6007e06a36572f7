// What a server is told: the options of `tactus serve` and `tactus front-end`, by their names.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planners/autoscale/advice.h"
#include "workload/scenario.h"

namespace tactus {

class ModelFolders;

// Of --lanes and --threads: the option is not there. Without both the lanes are chosen
// (kAutoLanes); without one of them it is 1.
inline constexpr int kUnsaid = -1;

struct ServeOptions {
  std::vector<std::string> models;        // repositories
  std::shared_ptr<ModelFolders> folders;  // of those (WithFolders); null until then
  std::string model_control = "none";
  std::vector<std::string> load_models;
  double poll_s = 15;

  std::string policy{kDefaultPolicy};
  std::string expiry = "unmeetable";
  std::string predictor;
  std::string save_predictor;
  std::string profile;
  double percentile = 95;
  double jitter_ms = 0;
  std::string follow = "yes";
  bool allow_other_machine = false;
  double default_slo_ms = 10'000;

  std::string engine;
  std::string onnxruntime;
  std::string device = "cpu";
  bool isolate = false;
  int lanes = 1;  // or kAutoLanes, or kUnsaid, until WithLanes
  int host_lanes = 1;
  int slots = 1;
  int threads = 1;                        // or kUnsaid, until WithLanes
  std::vector<std::string> chosen_lanes;  // lines for people, where both were chosen (WithLanes)
  std::string plan;
  std::string planner;                // NAME[:OPTIONS]
  std::vector<std::string> on_share;  // PERCENT=FILE
  double device_memory_mb = 0;        // 0: the machine's
  std::size_t queue_capacity = 4096;
  std::size_t call_capacity = 16'384;
  std::size_t pending_mb = 1024;
  int watchdog_multiple = 20;
  double watchdog_s = 5;
  bool pin = true;
  int spin_us = 10;

  // Of a site.
  std::vector<std::string> schedulers;  // HOST:PORT
  int most_workers = 16;                // of the site, as its schedulers have it
  std::string worker_name;              // empty: of the host, or the node, and the process
  std::string advertise;                // HOST:PORT; empty: where peer_listen says

  // Of a cluster.
  std::string peer_tls;  // a folder; empty: in the clear
  std::string peer_listen = "127.0.0.1:0";
  std::string routes;  // a file of its agent; empty: every step runs here

  std::string address = "127.0.0.1";
  std::uint16_t http_port = 8000;
  std::uint16_t grpc_port = 8001;
  std::uint16_t metrics_port = 8002;
  double grpc_ping_s = 1;
  std::string tls_cert;
  std::string tls_key;
  std::string tls_client_ca;
  std::string tokens;
  std::string admin_socket;
  bool insecure = false;
  std::string client_limits;
  std::vector<std::string> objectives;  // NAME=PRIORITY
  int http_threads = 1;
  std::size_t max_body_mb = 64;
  bool strict_triton = false;
  bool strict_readiness = true;
  bool triton_metrics = false;
  bool ui = true;

  // 0: no advice. The names after autoscale_ are the keys of a scenario's [autoscale].
  double autoscale_interval_s = 1;
  double autoscale_window_s = 10;
  AutoscaleOptions autoscale;

  std::string journal;
  std::string streams;     // the file that keeps them; empty: none does
  std::string trace_file;  // this and the next empty: no call can be traced
  std::string otlp;
  double grace_s = 5;
  std::string log_level = "info";
  std::string log_format = "text";
};

}  // namespace tactus
