#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "hindsight/hindsight.h"
#include "metrics/text_table.h"

namespace tactus {
namespace {

// Names are of whoever wrote the journal: nothing of them steers a terminal.
std::string OnTerminal(std::string text) {
  const auto steers = [](unsigned char c) { return (c < 0x20 && c != '\n') || c == 0x7f; };
  std::ranges::replace_if(text, steers, '?');
  return text;
}

std::string Ms(Duration d) { return fmt::format("{:.3f} ms", ToMillis(d)); }

double Percent(std::uint64_t part, std::uint64_t all) {
  return 100 * static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(all, 1));
}

// One slow run is the machine's doing; a profile is wrong for most.
std::string WhySlow(const ModelMisses& model) {
  return fmt::format("ran slower than expected, as {} of its {} batches did: {}", model.slow,
                     model.batches,
                     2 * model.slow > model.batches ? "measure the profile again"
                                                    : "something else held the machine then");
}

std::string WhyOf(MissCause cause, const ModelMisses& model) {
  switch (cause) {
    case MissCause::kFailed:
      return "their engine failed";
    case MissCause::kUnloaded:
      return "their model went away";
    case MissCause::kQueueFull:
      return "the queue was full";
    case MissCause::kTooShort:
      return "came with less time than the quickest run takes: a longer SLO, or send them sooner";
    case MissCause::kSlowRun:
      return WhySlow(model);
    case MissCause::kBatch:
      return "ran in a batch that was too large for them";
    case MissCause::kExit:
      return "ran too deep: an earlier exit";
    case MissCause::kNoLane:
      return "waited while no lane ran batches: they had died, or their servers had gone";
    case MissCause::kBusy:
      return "waited while all lanes were busy: another lane, or less load";
    case MissCause::kWaited:
      return "waited while a lane was idle: for a fuller batch, or for a lane that has the model";
  }
  return "";
}

// "'ee_m': 3 batches with 12 rows, 30.100 ms; ..." of each model, in order of the time they took.
std::string WhatRan(const std::vector<RanBatch>& batches, TimePoint from, TimePoint to) {
  struct Sum {
    int batches = 0, rows = 0;
    Duration took{};
  };
  std::map<std::string, Sum> sums;
  for (const RanBatch& batch : batches) {
    Sum& sum = sums[*batch.model];
    ++sum.batches;
    sum.rows += batch.rows;
    sum.took += std::min(batch.ended, to) - std::max(batch.decided, from);
  }
  std::vector<std::pair<std::string, Sum>> order(sums.begin(), sums.end());
  std::ranges::stable_sort(
      order, [](const auto& a, const auto& b) { return a.second.took > b.second.took; });
  constexpr std::size_t kMost = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(order.size(), kMost); ++i) {
    const auto& [model, sum] = order[i];
    text += fmt::format("    {:<20} {:>4} {} with {:>4} {}, {}\n", model, sum.batches,
                        sum.batches == 1 ? "batch  " : "batches", sum.rows,
                        sum.rows == 1 ? "row" : "rows", Ms(sum.took));
  }
  if (order.size() > kMost) text += fmt::format("    and {} other models\n", order.size() - kMost);
  return text;
}

// How much of what ran was of requests with a higher priority, in percent; empty where nothing was.
std::string HigherOf(const std::vector<RanBatch>& batches, const Miss& miss, TimePoint to) {
  Duration all{}, higher{};
  for (const RanBatch& batch : batches) {
    const Duration took = std::min(batch.ended, to) - std::max(batch.decided, miss.arrival);
    all += took;
    if (batch.priority < miss.priority) higher += took;
  }
  if (higher <= Duration{}) return "";
  return fmt::format("  {:.0f} % of that was of higher priority than its own, {}\n",
                     100 * ToMillis(higher) / ToMillis(all), miss.priority);
}

std::string RemedyOf(const Miss& miss) {
  const Duration had = miss.deadline - miss.arrival;
  // Nothing, where it was given up for others and might have had its turn at once.
  const std::string longer =
      miss.lacked > Duration{} ? fmt::format("a deadline after {} or later", Ms(had + miss.lacked))
                               : "";
  const auto or_longer = [&](const std::string& remedy) {
    return longer.empty() ? remedy : remedy + "; " + longer;
  };
  switch (miss.cause) {
    case MissCause::kFailed:
    case MissCause::kUnloaded:
      return "";
    case MissCause::kNoLane:
      return or_longer("a lane that runs batches: the log says why there was none");
    case MissCause::kQueueFull:
      return or_longer("a larger --queue-capacity, if it can be in time at all");
    case MissCause::kTooShort:
      return longer;
    case MissCause::kSlowRun:
      return or_longer(fmt::format("a run as quick as expected, {}", Ms(miss.batch->expected)));
    case MissCause::kBatch:
      return or_longer("a smaller batch");
    case MissCause::kExit:
      return or_longer("an earlier exit");
    case MissCause::kBusy:
    case MissCause::kWaited: {
      const bool deep = miss.arrival + miss.deepest <= miss.deadline;
      const bool shallow = !deep && miss.deepest > miss.quickest;
      return or_longer(fmt::format("an idle lane: there it takes {}{}",
                                   Ms(deep ? miss.deepest : miss.quickest),
                                   shallow ? " at the shallowest exit" : ""));
    }
  }
  return "";
}

}  // namespace

std::string TextOf(const Miss& miss, const Hindsight& hindsight) {
  const Duration had = miss.deadline - miss.arrival;
  const std::string how =
      miss.outcome == Outcome::kLate ? fmt::format("late by {}", Ms(miss.end - miss.deadline))
      : miss.outcome == Outcome::kError
          ? "failed"
          : fmt::format("{} after {}", Name(miss.outcome), Ms(miss.end - miss.arrival));
  std::string text =
      fmt::format("request {} of '{}' came at {:.6f} s and had {}: {}\n", miss.request.value(),
                  *miss.model, ToMillis(miss.arrival - kStart) / 1000, Ms(had), how);
  const TimePoint to = miss.batch ? miss.batch->started : miss.end;
  if (miss.batch) {
    text += fmt::format("  it waited {}, then ran for {} on lane {}, in a batch of {} at exit {}\n",
                        Ms(to - miss.arrival), Ms(miss.batch->ended - miss.batch->started),
                        miss.batch->lane.value(), miss.batch->rows, *miss.batch->exit);
  }
  text +=
      fmt::format("  while it waited, {:.0f} % of the lanes' time was taken\n", 100 * miss.busy);
  const std::vector<RanBatch> meanwhile = hindsight.Meanwhile(miss);
  text += WhatRan(meanwhile, miss.arrival, to) + HigherOf(meanwhile, miss, to);
  if (const std::string remedy = RemedyOf(miss); !remedy.empty()) {
    text += fmt::format("  what would have saved it: {}\n", remedy);
  }
  return OnTerminal(std::move(text));
}

std::string TextOf(const std::map<std::string, ModelMisses>& models) {
  TextTable table;
  table.AddColumns("model|requests|in time [%]|late|expired|shed|failed~1");
  for (const auto& [name, m] : models) {
    const std::uint64_t all = m.in_time + m.missed();
    std::vector<std::string> row = {name, fmt::format("{}", all),
                                    fmt::format("{:.2f}", Percent(m.in_time, all))};
    for (const std::uint64_t count : {m.late, m.expired, m.shed, m.failed}) {
      row.push_back(fmt::format("{}", count));
    }
    table.Add(std::move(row));
  }
  std::string text = table.Print();
  for (const auto& [name, m] : models) {
    if (m.missed() == 0) continue;
    text += fmt::format("\nof the {} of '{}' that were not in time\n", m.missed(), name);
    for (int i = 0; i < kMissCauses; ++i) {
      const std::uint64_t count = m.causes[static_cast<std::size_t>(i)];
      if (count == 0) continue;
      text += fmt::format("  {:>8}  {:>3.0f} %  {}\n", count, Percent(count, m.missed()),
                          WhyOf(static_cast<MissCause>(i), m));
    }
  }
  return OnTerminal(std::move(text));
}

}  // namespace tactus
