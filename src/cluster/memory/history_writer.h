// Keeps a leader's history: a Chronicle that the leader tells, and a thread that hands what came to
// a BufferedStore once a second, and plans at once. The leader waits for neither; the store may be
// away.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cluster/memory/chronicle.h"
#include "core/fleet_plan.h"
#include "knowledge/buffered_store.h"
#include "platform/repeated_task.h"

namespace tactus {

struct HistoryWriterOptions {
  std::chrono::milliseconds write_every{1000};
  std::chrono::seconds retain_every{60};
  std::chrono::milliseconds flush_within{2000};  // when it ends
  knowledge::BufferLimits buffer = {};
  knowledge::RetryPause retry = {};
  Chronicle::Utc utc;  // null: the system's
};

class HistoryWriter {
 public:
  using Log = std::function<void(const std::string&)>;

  HistoryWriter(std::unique_ptr<knowledge::StoreWriter> store, const FleetInput& declared,
                const std::string& planner, Log log, HistoryWriterOptions options = {});
  // After the leader has ended. Writes what came, if the store takes it within `flush_within`.
  ~HistoryWriter();

  FleetHistory& history() { return chronicle_; }
  // Begins the thread.
  void Start();
  // What the thread does each time.
  void Tick();
  // Waits until what was ticked is written; whether it is.
  bool Flush(std::chrono::milliseconds most);
  // Nothing before it leads.
  std::optional<knowledge::BufferedStore::Counts> counts() const;

 private:
  void Tell(const knowledge::BufferedStore::Counts& counts);

  const Log log_;
  const HistoryWriterOptions options_;
  const Chronicle::Utc utc_;
  Chronicle chronicle_;
  std::unique_ptr<knowledge::StoreWriter> store_;  // until it leads
  std::unique_ptr<knowledge::BufferedStore> buffered_;
  knowledge::UtcTime retain_at_{};
  knowledge::BufferedStore::Counts told_;  // what the log says
  bool away_ = false;                      // as the log says
  RepeatedTask thread_;
};

// A store that is opened when it is first written to, and again as long as it is away.
std::unique_ptr<knowledge::StoreWriter> OpenedLater(std::string where);

// The system's clock.
knowledge::UtcTime UtcNow();

}  // namespace tactus
