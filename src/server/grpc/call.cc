#include "server/grpc/call.h"

#include <algorithm>

#include "server/kserve/error_mapping.h"

namespace tactus {

std::optional<Duration> CallHead::TimeLeft() const {
  if (!deadline) return std::nullopt;
  return std::chrono::duration_cast<Duration>(*deadline - Clock::now());
}

void OutMessage::Add(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  if (bytes.empty()) return;
  size += bytes.size();
  pieces.push_back({bytes, std::move(owner)});
}

void OutMessage::Add(std::string text) {
  auto owner = std::make_shared<const std::string>(std::move(text));
  const auto bytes = std::as_bytes(std::span(*owner));
  Add(bytes, std::move(owner));
}

CallEnd EndOf(const Status& status, bool strict_triton) {
  if (status) return {};
  WireError wire = ToWire(status.error(), strict_triton);
  CallEnd end{.code = wire.grpc, .text = std::move(wire.text), .trailers = {}};
  // Milliseconds; clients with a retry policy wait that long.
  if (wire.retry_after) end.trailers.emplace_back("grpc-retry-pushback-ms", "1000");
  return end;
}

Error NoWholeMessage() {
  return {ErrorCode::kInternal, "no whole message came: its frame is cut off or wrong"};
}

CallEnd DeadlinePassed() {
  return EndOf(Fail(ErrorCode::kDeadlineExceeded, "Deadline Exceeded"), false);
}

}  // namespace tactus
