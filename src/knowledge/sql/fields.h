// The columns of each record's table, told once: what is written and what is read follow from it.
//
//   Fields<Plan>::Visit(plan, [](const char* column, auto& field) {...});
#pragma once

#include "knowledge/records.h"

namespace tactus::knowledge {

// kTable, and kOrder: the columns by which records are read in order.
template <class Record>
struct Fields;

template <>
struct Fields<ArrivalSample> {
  static constexpr const char* kTable = "arrival";
  static constexpr const char* kOrder = "at, pipeline, stage, source";
  static void Visit(auto& r, auto&& visit) {
    visit("at", r.at);
    visit("pipeline", r.pipeline);
    visit("stage", r.stage);
    visit("source", r.source);
    visit("window_ns", r.window);
    visit("rate_rps", r.rate_rps);
    visit("cv", r.cv);
    visit("items", r.items);
    visit("bytes_in", r.bytes_in);
    visit("bytes_out", r.bytes_out);
  }
};

template <>
struct Fields<NetworkSample> {
  static constexpr const char* kTable = "network";
  static constexpr const char* kOrder = "at, from_site, to_site";
  static void Visit(auto& r, auto&& visit) {
    visit("at", r.at);
    visit("from_site", r.from_site);
    visit("to_site", r.to_site);
    visit("mbps", r.mbps);
    visit("rtt_ns", r.rtt);
    visit("loss", r.loss);
  }
};

template <>
struct Fields<TokenUse> {
  static constexpr const char* kTable = "token_use";
  static constexpr const char* kOrder = "token";
  static void Visit(auto& r, auto&& visit) {
    visit("token", r.token);
    visit("node", r.node);
    visit("public_key", r.public_key);
    visit("at", r.at);
    visit("expires", r.expires);
  }
};

template <>
struct Fields<Plan> {
  static constexpr const char* kTable = "plan";
  static constexpr const char* kOrder = "epoch";
  static void Visit(auto& r, auto&& visit) {
    visit("epoch", r.epoch);
    visit("term", r.term);
    visit("made", r.made);
    visit("input", r.input);
    visit("plan", r.plan);
    visit("predicted", r.predicted);
    visit("fate", r.fate);
    visit("decided", r.decided);
    visit("why", r.why);
  }
};

template <>
struct Fields<Verdict> {
  static constexpr const char* kTable = "plan";
  static constexpr const char* kOrder = "epoch";
  static void Visit(auto& r, auto&& visit) {
    visit("epoch", r.epoch);
    visit("fate", r.fate);
    visit("decided", r.decided);
    visit("why", r.why);
  }
};

template <>
struct Fields<Event> {
  static constexpr const char* kTable = "event";
  static constexpr const char* kOrder = "number";
  static void Visit(auto& r, auto&& visit) {
    visit("number", r.number);
    visit("at", r.at);
    visit("kind", r.kind);
    visit("subject", r.subject);
    visit("text", r.text);
  }
};

}  // namespace tactus::knowledge
