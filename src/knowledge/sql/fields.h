// The columns of each record's table, told once: what is written and what is read follow from it.
#pragma once

#include <array>
#include <tuple>

#include "knowledge/records.h"

namespace tactus::knowledge {

// kTable, its columns, and in the same order a record's fields; kOrder: the columns by which
// records are read in order.
template <class Record>
struct Fields;

template <>
struct Fields<ArrivalSample> {
  static constexpr const char* kTable = "arrival";
  static constexpr const char* kOrder = "at, pipeline, stage, source";
  static constexpr std::array kColumns = {"at",       "pipeline", "stage", "source",   "window_ns",
                                          "rate_rps", "cv",       "items", "bytes_in", "bytes_out"};
  static auto Of(auto& r) {
    return std::tie(r.at, r.pipeline, r.stage, r.source, r.window, r.rate_rps, r.cv, r.items,
                    r.bytes_in, r.bytes_out);
  }
};

template <>
struct Fields<NetworkSample> {
  static constexpr const char* kTable = "network";
  static constexpr const char* kOrder = "at, from_site, to_site";
  static constexpr std::array kColumns = {"at", "from_site", "to_site", "mbps", "rtt_ns", "loss"};
  static auto Of(auto& r) { return std::tie(r.at, r.from_site, r.to_site, r.mbps, r.rtt, r.loss); }
};

template <>
struct Fields<TokenUse> {
  static constexpr const char* kTable = "token_use";
  static constexpr const char* kOrder = "token";
  static constexpr std::array kColumns = {"token", "node", "public_key", "at", "expires"};
  static auto Of(auto& r) { return std::tie(r.token, r.node, r.public_key, r.at, r.expires); }
};

template <>
struct Fields<Plan> {
  static constexpr const char* kTable = "plan";
  static constexpr const char* kOrder = "epoch";
  static constexpr std::array kColumns = {"epoch",     "term", "made",    "input", "plan",
                                          "predicted", "fate", "decided", "why"};
  static auto Of(auto& r) {
    return std::tie(r.epoch, r.term, r.made, r.input, r.plan, r.predicted, r.fate, r.decided,
                    r.why);
  }
};

template <>
struct Fields<Verdict> {
  static constexpr const char* kTable = "plan";
  static constexpr const char* kOrder = "epoch";
  static constexpr std::array kColumns = {"epoch", "fate", "decided", "why"};
  static auto Of(auto& r) { return std::tie(r.epoch, r.fate, r.decided, r.why); }
};

template <>
struct Fields<Event> {
  static constexpr const char* kTable = "event";
  static constexpr const char* kOrder = "number";
  static constexpr std::array kColumns = {"number", "at", "kind", "subject", "text"};
  static auto Of(auto& r) { return std::tie(r.number, r.at, r.kind, r.subject, r.text); }
};

// visit(column, field) for each.
void VisitFields(auto& record, auto&& visit) {
  using These = Fields<std::remove_cvref_t<decltype(record)>>;
  const auto fields = These::Of(record);
  static_assert(std::tuple_size_v<std::remove_const_t<decltype(fields)>> == These::kColumns.size());
  std::size_t at = 0;
  std::apply([&](auto&... field) { (visit(These::kColumns[at++], field), ...); }, fields);
}

}  // namespace tactus::knowledge
