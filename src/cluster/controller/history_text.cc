#include "cluster/controller/history_text.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tactus {
namespace {

using knowledge::UtcTime;

std::string TimeText(UtcTime at) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", std::chrono::floor<std::chrono::seconds>(at));
}

std::string StampText(UtcTime at) {
  const auto micros = at.time_since_epoch().count() % 1'000'000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", std::chrono::floor<std::chrono::seconds>(at),
                     micros);
}

std::string FateText(knowledge::PlanFate fate) {
  switch (fate) {
    case knowledge::PlanFate::kProposed:
      return "unknown";  // its controller did not live to say so
    case knowledge::PlanFate::kAdopted:
      return "adopted";
    case knowledge::PlanFate::kAbandoned:
      break;
  }
  return "abandoned";
}

// Columns aligned left, but for those that hold numbers; the last one is as long as it is.
class PastTable {
 public:
  PastTable(std::string title, std::vector<std::string> head, std::vector<bool> numbers)
      : title_(std::move(title)), numbers_(std::move(numbers)), rows_{std::move(head)} {}

  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  std::string Print() const {
    if (rows_.size() == 1) return title_ + ": none\n";
    std::vector<std::size_t> widths(rows_.front().size(), 0);
    for (const auto& row : rows_) {
      for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
    }
    std::string text = title_ + "\n";
    for (const auto& row : rows_) {
      std::string line;
      for (std::size_t c = 0; c < row.size(); ++c) {
        line += "  ";
        line += numbers_[c] ? fmt::format("{:>{}}", row[c], widths[c])
                            : fmt::format("{:<{}}", row[c], widths[c]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text;
  }

 private:
  std::string title_;
  std::vector<bool> numbers_;
  std::vector<std::vector<std::string>> rows_;
};

// Of a plan's JSON: how many entries of a list it has.
std::string CountIn(const std::string& json, const char* list) {
  const auto document = nlohmann::json::parse(json, nullptr, false);
  if (!document.is_object() || !document.contains(list)) return "?";
  return std::to_string(document.at(list).size());
}

std::string PlansTable(const std::vector<knowledge::Plan>& plans) {
  PastTable table("plans", {"made", "plan", "nodes", "instances", "", "after", "why"},
                  {false, false, true, true, false, true, false});
  for (const knowledge::Plan& each : plans) {
    const bool decided = each.fate != knowledge::PlanFate::kProposed;
    const double after = std::chrono::duration<double>(each.decided - each.made).count();
    table.Add({TimeText(each.made), fmt::format("{}.{}", each.term, each.epoch),
               CountIn(each.input, "devices"), CountIn(each.plan, "instances"), FateText(each.fate),
               decided ? fmt::format("{:.1f} s", after) : "", each.why});
  }
  return table.Print();
}

std::string EventsTable(const std::vector<knowledge::Event>& events) {
  PastTable table("events", {"at", "what", "of", ""}, {false, false, false, false});
  for (const knowledge::Event& each : events) {
    table.Add({TimeText(each.at), each.kind, each.subject, each.text});
  }
  return table.Print();
}

std::string ArrivalsTable(const std::vector<knowledge::ArrivalSample>& samples) {
  struct Sum {
    std::int64_t count = 0;
    double sum = 0, most = 0, last = 0;
  };
  std::map<std::tuple<std::string, std::string, std::string>, Sum> sums;
  for (const knowledge::ArrivalSample& each : samples) {
    Sum& sum = sums[{each.pipeline, each.stage, each.source}];
    ++sum.count;
    sum.sum += each.rate_rps;
    sum.most = std::max(sum.most, each.rate_rps);
    sum.last = each.rate_rps;
  }
  PastTable table("arrivals, items a second",
                  {"pipeline", "stage", "source", "mean", "most", "last", "samples"},
                  {false, false, false, true, true, true, true});
  for (const auto& [key, sum] : sums) {
    const auto& [pipeline, stage, source] = key;
    table.Add({pipeline, stage, source,
               fmt::format("{:.1f}", sum.sum / static_cast<double>(sum.count)),
               fmt::format("{:.1f}", sum.most), fmt::format("{:.1f}", sum.last),
               std::to_string(sum.count)});
  }
  return table.Print();
}

std::string LinksTable(const std::vector<knowledge::NetworkSample>& samples) {
  struct Seen {
    std::vector<double> mbps;
    Duration rtt{};
  };
  std::map<std::pair<std::string, std::string>, Seen> links;
  for (const knowledge::NetworkSample& each : samples) {
    Seen& seen = links[{each.from_site, each.to_site}];
    seen.mbps.push_back(each.mbps);
    seen.rtt = std::max(seen.rtt, each.rtt);
  }
  PastTable table("links, Mbit/s",
                  {"from", "to", "least", "P25", "median", "most", "longest rtt", "samples"},
                  {false, false, true, true, true, true, true, true});
  for (auto& [ends, seen] : links) {
    std::ranges::sort(seen.mbps);
    const auto rank = [&mbps = seen.mbps](std::size_t quarters) {  // nearest rank
      return mbps[std::max<std::size_t>((mbps.size() * quarters + 3) / 4, 1) - 1];
    };
    table.Add({ends.first, ends.second, fmt::format("{:.1f}", seen.mbps.front()),
               fmt::format("{:.1f}", rank(1)), fmt::format("{:.1f}", rank(2)),
               fmt::format("{:.1f}", seen.mbps.back()),
               fmt::format("{:.1f} ms", ToMillis(seen.rtt)), std::to_string(seen.mbps.size())});
  }
  return table.Print();
}

// As the document that it is, where it is one.
nlohmann::ordered_json Parsed(const std::string& text) {
  auto document = nlohmann::ordered_json::parse(text, nullptr, false);
  if (document.is_discarded()) return text;
  return document;
}

}  // namespace

std::string PastTables(const ClusterPast& past) {
  std::vector<std::string> tables;
  if (past.plans) tables.push_back(PlansTable(*past.plans));
  if (past.events) tables.push_back(EventsTable(*past.events));
  if (past.arrivals) tables.push_back(ArrivalsTable(*past.arrivals));
  if (past.links) tables.push_back(LinksTable(*past.links));
  std::string text;
  for (const std::string& each : tables) text += (text.empty() ? "" : "\n") + each;
  return text;
}

std::string PastJson(const ClusterPast& past) {
  nlohmann::ordered_json document = {{"tactus_history", 1}};
  for (const auto& each : past.plans.value_or(std::vector<knowledge::Plan>{})) {
    document["plans"].push_back({{"epoch", each.epoch},
                                 {"term", each.term},
                                 {"made", StampText(each.made)},
                                 {"fate", FateText(each.fate)},
                                 {"decided", StampText(each.decided)},
                                 {"why", each.why},
                                 {"input", Parsed(each.input)},
                                 {"plan", Parsed(each.plan)},
                                 {"predicted", Parsed(each.predicted)}});
  }
  for (const auto& each : past.events.value_or(std::vector<knowledge::Event>{})) {
    document["events"].push_back({{"number", each.number},
                                  {"at", StampText(each.at)},
                                  {"kind", each.kind},
                                  {"subject", each.subject},
                                  {"text", each.text}});
  }
  for (const auto& each : past.arrivals.value_or(std::vector<knowledge::ArrivalSample>{})) {
    document["arrivals"].push_back({{"at", StampText(each.at)},
                                    {"pipeline", each.pipeline},
                                    {"stage", each.stage},
                                    {"source", each.source},
                                    {"rate_rps", each.rate_rps},
                                    {"items", each.items}});
  }
  for (const auto& each : past.links.value_or(std::vector<knowledge::NetworkSample>{})) {
    document["links"].push_back({{"at", StampText(each.at)},
                                 {"from", each.from_site},
                                 {"to", each.to_site},
                                 {"mbps", each.mbps},
                                 {"rtt_ms", ToMillis(each.rtt)}});
  }
  if (past.plans && past.plans->empty()) document["plans"] = nlohmann::json::array();
  if (past.events && past.events->empty()) document["events"] = nlohmann::json::array();
  if (past.arrivals && past.arrivals->empty()) document["arrivals"] = nlohmann::json::array();
  if (past.links && past.links->empty()) document["links"] = nlohmann::json::array();
  return document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace tactus
