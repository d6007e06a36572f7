// Decides by a call's header whether its body is read (pipeline/body_gate.h), for both protocols.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/expected.h"
#include "pipeline/body_gate.h"
#include "service/inference_service.h"

namespace tactus {

// Thread-safe. Places may outlive it.
class BodyAdmission {
 public:
  // Told on the caller's thread, may be empty: `unread` of each call that is refused so, `late` of
  // each answer that was in time when it was computed and late when it left for its client.
  explicit BodyAdmission(std::function<void()> unread, std::function<void()> late = {})
      : unread_(std::move(unread)), late_(std::move(late)) {}

  // A call's place, from its header to its answer.
  class Place {
   public:
    ~Place() { Leave(AdmissionWindow::End::kNeither); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // What became of the call, which waits for I/O threads for `way`, to and fro. The first that is
    // told counts.
    void Answered(const InferReply& reply, Duration way);

   private:
    friend class BodyAdmission;
    struct Gate;
    Place(std::shared_ptr<Gate> gate, BodyGate::Place place)
        : gate_(std::move(gate)), place_(place) {}
    void Leave(AdmissionWindow::End end);

    std::shared_ptr<Gate> gate_;  // null: left
    BodyGate::Place place_;
  };

  // A place for a call with a body of so many bytes and, if the client limits it, so much time.
  // Null for one that needs none: of a small body, or for a model that is not there, which the
  // service will say. ResourceExhausted, in words for the client: its body is not to be read.
  Expected<std::shared_ptr<Place>> Enter(const InferenceService& service, std::string_view model,
                                         std::int64_t version, std::size_t bytes,
                                         std::optional<Duration> limit);

  // The answer to a call with so much time from `received` on leaves for its client.
  void OnLeaving(const InferReply& reply, std::chrono::steady_clock::time_point received,
                 std::optional<Duration> limit) const;

 private:
  std::shared_ptr<Place::Gate> GateOf(const std::string& model);

  const std::function<void()> unread_;
  const std::function<void()> late_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Place::Gate>> gates_;  // by model
};

}  // namespace tactus
