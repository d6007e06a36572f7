// For tests: what a dispatcher asks of its driver, as lines that a test compares with a story.
//
//   launch b0 of m1: exit 2, lane 0 [4 5 6]
//   reject 7 of m0: expired
//   complete b0 ok [4 5 6]
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dispatch/outbox.h"

namespace tactus {

class Transcript final : public Outbox {
 public:
  void Launch(const Batch& batch) override {
    Say("launch b" + std::to_string(batch.id.value()) + " of m" +
        std::to_string(batch.model.value()) + ": exit " + std::to_string(batch.exit.value()) +
        ", lane " + std::to_string(batch.lane.value()) + Ids(batch.requests));
  }
  void Abort(LaneId lane, BatchId batch) override {
    Say("abort b" + std::to_string(batch.value()) + " on lane " + std::to_string(lane.value()));
  }
  void Reject(ModelId model, const Request& request, DropReason reason) override {
    static constexpr const char* kReasons[] = {"queue full", "expired", "shed", "cancelled",
                                               "unloaded"};
    Say("reject " + std::to_string(request.id.value()) + " of m" + std::to_string(model.value()) +
        ": " + kReasons[static_cast<int>(reason)]);
    ++ends_[request.id.value()];
  }
  void Complete(const Batch& batch, const BatchReport& report) override {
    static constexpr const char* kStatus[] = {"ok", "failed", "aborted", "lost"};
    Say("complete b" + std::to_string(batch.id.value()) + " " +
        kStatus[static_cast<int>(report.status)] + Ids(batch.requests));
    for (const Request& request : batch.requests) ++ends_[request.id.value()];
  }

  // What was said since the last Take, one command a line.
  std::string Take() {
    std::string said;
    for (const std::string& line : lines_) said += line + "\n";
    lines_.clear();
    return said;
  }
  // How often each request ended.
  const std::map<std::uint64_t, int>& ends() const { return ends_; }

 private:
  void Say(std::string line) { lines_.push_back(std::move(line)); }
  static std::string Ids(std::span<const Request> requests) {
    std::string ids = " [";
    for (const Request& request : requests) {
      ids += (&request == requests.data() ? "" : " ") + std::to_string(request.id.value());
    }
    return ids + "]";
  }

  std::vector<std::string> lines_;
  std::map<std::uint64_t, int> ends_;
};

}  // namespace tactus
