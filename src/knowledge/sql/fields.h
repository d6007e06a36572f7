// The columns of each record's table, told once: what is written, what is read and how samples are
// rolled up follow from it.
//
//   Fields<Device>::Visit(device, [](const char* column, auto& field, Role role) {...});
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "knowledge/records.h"

namespace tactus::knowledge {

// What becomes of a column when samples are rolled up. kAt: the instant, floored to the unit.
// Records that are no samples have keys and the rest (kMost, say: it does not matter).
enum class Role { kAt, kKey, kSum, kMean, kMost };

template <class Record>
struct Fields;

template <>
struct Fields<Device> {
  static constexpr const char* kTable = "device";
  static void Visit(auto& r, auto&& visit) {
    visit("name", r.name, Role::kKey);
    visit("kind", r.kind, Role::kMost);
    visit("site", r.site, Role::kMost);
    visit("accelerators", r.accelerators, Role::kMost);
    visit("memory_mb", r.memory_mb, Role::kMost);
    visit("server", r.server, Role::kMost);
    visit("seen", r.seen, Role::kMost);
  }
};

template <>
struct Fields<Link> {
  static constexpr const char* kTable = "link";
  static void Visit(auto& r, auto&& visit) {
    visit("from_site", r.from_site, Role::kKey);
    visit("to_site", r.to_site, Role::kKey);
    visit("mbps", r.mbps, Role::kMost);
    visit("rtt_ns", r.rtt, Role::kMost);
  }
};

template <>
struct Fields<Model> {
  static constexpr const char* kTable = "model";
  static void Visit(auto& r, auto&& visit) {
    visit("digest", r.digest, Role::kKey);
    visit("name", r.name, Role::kMost);
    visit("bytes", r.bytes, Role::kMost);
  }
};

template <>
struct Fields<Pipeline> {
  static constexpr const char* kTable = "pipeline";
  static void Visit(auto& r, auto&& visit) {
    visit("name", r.name, Role::kKey);
    visit("source", r.source, Role::kMost);
    visit("slo_ns", r.slo, Role::kMost);
    visit("declaration", r.declaration, Role::kMost);
  }
};

// A stage in its table.
struct StageOfPipeline {
  std::string pipeline;
  std::int64_t number = 0;
  Stage stage;
};

template <>
struct Fields<StageOfPipeline> {
  static constexpr const char* kTable = "stage";
  static void Visit(auto& r, auto&& visit) {
    visit("pipeline", r.pipeline, Role::kKey);
    visit("number", r.number, Role::kKey);
    visit("name", r.stage.name, Role::kMost);
    visit("model", r.stage.model, Role::kMost);
    visit("items", r.stage.items, Role::kMost);
    visit("in_kb", r.stage.in_kb, Role::kMost);
    visit("out_kb", r.stage.out_kb, Role::kMost);
  }
};

template <>
struct Fields<Profile> {
  static constexpr const char* kTable = "profile";
  static void Visit(auto& r, auto&& visit) {
    visit("model", r.model, Role::kKey);
    visit("kind", r.kind, Role::kKey);
    visit("exit", r.exit, Role::kKey);
    visit("batch", r.batch, Role::kKey);
    visit("pre_p50_ns", r.pre.p50, Role::kMost);
    visit("pre_p95_ns", r.pre.p95, Role::kMost);
    visit("pre_p99_ns", r.pre.p99, Role::kMost);
    visit("infer_p50_ns", r.infer.p50, Role::kMost);
    visit("infer_p95_ns", r.infer.p95, Role::kMost);
    visit("infer_p99_ns", r.infer.p99, Role::kMost);
    visit("post_p50_ns", r.post.p50, Role::kMost);
    visit("post_p95_ns", r.post.p95, Role::kMost);
    visit("post_p99_ns", r.post.p99, Role::kMost);
    visit("memory_mb", r.memory_mb, Role::kMost);
    visit("use_l1", r.use[0], Role::kMost);
    visit("use_l2", r.use[1], Role::kMost);
    visit("use_dram", r.use[2], Role::kMost);
    visit("use_tensor", r.use[3], Role::kMost);
    visit("use_fma", r.use[4], Role::kMost);
    visit("source", r.source, Role::kMost);
    visit("made", r.made, Role::kMost);
  }
};

template <>
struct Fields<ArrivalSample> {
  static constexpr const char* kTable = "arrival";
  static void Visit(auto& r, auto&& visit) {
    visit("at", r.at, Role::kAt);
    visit("pipeline", r.pipeline, Role::kKey);
    visit("stage", r.stage, Role::kKey);
    visit("source", r.source, Role::kKey);
    visit("window_ns", r.window, Role::kSum);
    visit("rate_rps", r.rate_rps, Role::kMean);
    visit("cv", r.cv, Role::kMean);
    visit("items", r.items, Role::kMean);
    visit("bytes_in", r.bytes_in, Role::kSum);
    visit("bytes_out", r.bytes_out, Role::kSum);
  }
};

template <>
struct Fields<BatchLatencySample> {
  static constexpr const char* kTable = "batch_latency";
  static void Visit(auto& r, auto&& visit) {
    visit("at", r.at, Role::kAt);
    visit("device", r.device, Role::kKey);
    visit("model", r.model, Role::kKey);
    visit("exit", r.exit, Role::kKey);
    visit("batch", r.batch, Role::kKey);
    visit("batches", r.batches, Role::kSum);
    visit("p50_ns", r.took.p50, Role::kMost);
    visit("p95_ns", r.took.p95, Role::kMost);
    visit("p99_ns", r.took.p99, Role::kMost);
  }
};

template <>
struct Fields<OutcomeSample> {
  static constexpr const char* kTable = "outcome";
  static void Visit(auto& r, auto&& visit) {
    visit("at", r.at, Role::kAt);
    visit("pipeline", r.pipeline, Role::kKey);
    visit("stage", r.stage, Role::kKey);
    visit("on_time", r.on_time, Role::kSum);
    visit("late", r.late, Role::kSum);
    visit("dropped", r.dropped, Role::kSum);
    visit("p50_ns", r.took.p50, Role::kMost);
    visit("p95_ns", r.took.p95, Role::kMost);
    visit("p99_ns", r.took.p99, Role::kMost);
  }
};

template <>
struct Fields<NetworkSample> {
  static constexpr const char* kTable = "network";
  static void Visit(auto& r, auto&& visit) {
    visit("at", r.at, Role::kAt);
    visit("from_site", r.from_site, Role::kKey);
    visit("to_site", r.to_site, Role::kKey);
    visit("mbps", r.mbps, Role::kMean);
    visit("rtt_ns", r.rtt, Role::kMean);
    visit("loss", r.loss, Role::kMean);
  }
};

template <>
struct Fields<DeviceLoadSample> {
  static constexpr const char* kTable = "device_load";
  static void Visit(auto& r, auto&& visit) {
    visit("at", r.at, Role::kAt);
    visit("device", r.device, Role::kKey);
    visit("accelerator", r.accelerator, Role::kKey);
    visit("use", r.use, Role::kMean);
    visit("memory_mb", r.memory_mb, Role::kMost);
    visit("host_cores", r.host_cores, Role::kMean);
  }
};

template <>
struct Fields<TokenUse> {
  static constexpr const char* kTable = "token_use";
  static void Visit(auto& r, auto&& visit) {
    visit("token", r.token, Role::kKey);
    visit("node", r.node, Role::kMost);
    visit("public_key", r.public_key, Role::kMost);
    visit("at", r.at, Role::kMost);
    visit("expires", r.expires, Role::kMost);
  }
};

template <>
struct Fields<Plan> {
  static constexpr const char* kTable = "plan";
  static void Visit(auto& r, auto&& visit) {
    visit("epoch", r.epoch, Role::kKey);
    visit("term", r.term, Role::kMost);
    visit("made", r.made, Role::kMost);
    visit("input", r.input, Role::kMost);
    visit("plan", r.plan, Role::kMost);
    visit("predicted", r.predicted, Role::kMost);
    visit("fate", r.fate, Role::kMost);
    visit("decided", r.decided, Role::kMost);
    visit("why", r.why, Role::kMost);
  }
};

template <>
struct Fields<Verdict> {
  static constexpr const char* kTable = "plan";
  static void Visit(auto& r, auto&& visit) {
    visit("epoch", r.epoch, Role::kKey);
    visit("fate", r.fate, Role::kMost);
    visit("decided", r.decided, Role::kMost);
    visit("why", r.why, Role::kMost);
  }
};

template <>
struct Fields<Event> {
  static constexpr const char* kTable = "event";
  static void Visit(auto& r, auto&& visit) {
    visit("number", r.number, Role::kKey);
    visit("at", r.at, Role::kMost);
    visit("kind", r.kind, Role::kMost);
    visit("subject", r.subject, Role::kMost);
    visit("text", r.text, Role::kMost);
  }
};

}  // namespace tactus::knowledge
