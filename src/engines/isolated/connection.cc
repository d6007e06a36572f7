#include "engines/isolated/connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace tactus::isolated {
namespace {

using Length = std::uint32_t;
constexpr std::size_t kMostMessage = std::size_t{64} << 20;
constexpr std::size_t kReadAtLeast = 4096;
constexpr int kParts = 10;  // of the time that somebody waits

// A control message with one descriptor.
struct HandOver {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> bytes{};
};

void Attach(msghdr& message, HandOver& control, int descriptor) {
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
}

// -1: there was none.
int Detach(msghdr& message) {
  int descriptor = -1;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
  }
  return descriptor;
}

}  // namespace

Expected<std::pair<Connection, Connection>> Connection::Make() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Fail(ErrorCode::kResourceExhausted,
                std::string("a socket for an engine's process: ") + std::strerror(errno));
  }
  return std::pair(Connection(ends[0]), Connection(ends[1]));
}

Connection::Connection(Connection&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      handed_over_(std::exchange(other.handed_over_, {})),
      buffer_(std::move(other.buffer_)),
      size_(std::exchange(other.size_, 0)),
      taken_(std::exchange(other.taken_, 0)) {}

Connection& Connection::operator=(Connection&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(handed_over_, other.handed_over_);
  std::swap(buffer_, other.buffer_);
  std::swap(size_, other.size_);
  std::swap(taken_, other.taken_);
  return *this;
}

Connection::~Connection() {
  for (const int descriptor : handed_over_) close(descriptor);
  if (descriptor_ >= 0) close(descriptor_);
}

bool Connection::Send(std::span<const std::byte> message, int handed_over) {
  auto length = static_cast<Length>(message.size());
  std::array<iovec, 2> parts{iovec{&length, sizeof length},
                             iovec{const_cast<std::byte*>(message.data()), message.size()}};
  msghdr head{};
  head.msg_iov = parts.data();
  head.msg_iovlen = parts.size();
  HandOver control;
  if (handed_over >= 0) Attach(head, control, handed_over);
  std::size_t left = sizeof length + message.size();
  while (left > 0) {
    const ssize_t sent = sendmsg(descriptor_, &head, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    left -= static_cast<std::size_t>(sent);
    head.msg_control = nullptr;
    head.msg_controllen = 0;
    for (auto gone = static_cast<std::size_t>(sent); iovec & part : parts) {
      const std::size_t of_this = std::min(gone, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + of_this;
      part.iov_len -= of_this;
      gone -= of_this;
    }
  }
  return true;
}

// The kernel takes so few bytes whole or not at all.
void Connection::SendOrNot(std::span<const std::byte> message) {
  auto length = static_cast<Length>(message.size());
  std::array<iovec, 2> parts{iovec{&length, sizeof length},
                             iovec{const_cast<std::byte*>(message.data()), message.size()}};
  msghdr head{};
  head.msg_iov = parts.data();
  head.msg_iovlen = parts.size();
  (void)sendmsg(descriptor_, &head, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// In parts, each of which counts as long as it was meant to be, however long it took.
bool Connection::AwaitInput(Duration limit) const {
  if (limit == kNoLimit) return true;
  pollfd input{descriptor_, POLLIN, 0};
  const Duration part = std::max(limit / kParts, Duration{Millis(1)});
  for (Duration waited{}; waited <= limit; waited += part) {
    const Duration now = std::min(part, limit - waited);
    if (poll(&input, 1, static_cast<int>(ToMillis(now))) > 0) return true;
  }
  return false;
}

// Until there are `bytes`.
bool Connection::Read(std::size_t bytes, Duration limit) {
  while (size_ < bytes) {
    if (!AwaitInput(limit)) return false;
    if (buffer_.size() < std::max(bytes, kReadAtLeast)) {
      buffer_.resize(std::max(bytes, kReadAtLeast));
    }
    iovec part{buffer_.data() + size_, buffer_.size() - size_};
    msghdr head{};
    head.msg_iov = &part;
    head.msg_iovlen = 1;
    HandOver control;
    head.msg_control = control.bytes.data();
    head.msg_controllen = control.bytes.size();
    const ssize_t got = recvmsg(descriptor_, &head, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    size_ += static_cast<std::size_t>(got);
    if (const int descriptor = Detach(head); descriptor >= 0) handed_over_.push_back(descriptor);
  }
  return true;
}

std::optional<std::span<const std::byte>> Connection::Receive(Duration limit) {
  if (taken_ > 0) std::memmove(buffer_.data(), buffer_.data() + taken_, size_ - taken_);
  size_ -= std::exchange(taken_, 0);
  if (!Read(sizeof(Length), limit)) return {};
  Length length = 0;
  std::memcpy(&length, buffer_.data(), sizeof length);
  if (length > kMostMessage || !Read(sizeof length + length, limit)) return {};
  taken_ = sizeof length + length;
  return std::span<const std::byte>(buffer_).subspan(sizeof length, length);
}

int Connection::TakeHandedOver() {
  if (handed_over_.empty()) return -1;
  const int first = handed_over_.front();
  handed_over_.erase(handed_over_.begin());
  return first;
}

}  // namespace tactus::isolated
