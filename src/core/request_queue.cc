#include "core/request_queue.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tactus {
namespace {

bool Before(const Request& a, const Request& b) {
  return a.deadline != b.deadline ? a.deadline < b.deadline : a.id < b.id;
}

}  // namespace

RequestQueue::RequestQueue(std::size_t capacity)
    : capacity_(capacity),
      mask_(std::bit_ceil(capacity) - 1),
      cells_(static_cast<Request*>(::operator new((mask_ + 1) * sizeof(Request)))) {
  static_assert(std::is_trivially_copyable_v<Request>, "cells are assigned to, not made");
  CHECK(capacity > 0, "a queue that holds nothing would refuse every request");
}

int RequestQueue::Batchable(int limit) const {
  const int most = size_ < static_cast<std::size_t>(limit) ? static_cast<int>(size_) : limit;
  if (others_ == 0) return most;
  int n = 0;
  while (n < most && (*this)[n].shape == front().shape) ++n;
  return n;
}

int RequestQueue::Priority(int limit, int otherwise) const {
  if (prioritised_ == 0) return otherwise;
  const std::size_t most = std::min(size_, static_cast<std::size_t>(std::max(limit, 1)));
  int highest = std::numeric_limits<int>::max();
  for (std::size_t i = 0; i < most; ++i) {
    const std::uint32_t own = (*this)[i].priority;
    highest = std::min(highest, own == 0 ? otherwise : static_cast<int>(own));
  }
  return highest;
}

bool RequestQueue::Push(const Request& request) {
  if (full()) return false;
  if (size_ == 0) shape_ = request.shape;
  if (request.shape != shape_) ++others_;
  if (request.priority != 0) ++prioritised_;
  std::size_t i = size_++;
  for (; i > 0 && Before(request, At(i - 1)); --i) At(i) = At(i - 1);
  At(i) = request;
  return true;
}

void RequestQueue::PopFront(std::size_t n) {
  CHECK(n <= size_, "popping more requests than wait");
  for (std::size_t i = 0; others_ + prioritised_ > 0 && i < n; ++i) {
    if (At(i).shape != shape_) --others_;
    if (At(i).priority != 0) --prioritised_;
  }
  size_ -= n;
  head_ = size_ == 0 ? 0 : (head_ + n) & mask_;
}

std::optional<Request> RequestQueue::Remove(RequestId id) {
  for (std::size_t i = 0; i < size_; ++i) {
    if (At(i).id != id) continue;
    const Request found = At(i);
    // The shorter side moves up: a call that leaves takes all of its requests, most often in order.
    if (i < size_ / 2) {
      for (std::size_t j = i; j > 0; --j) At(j) = At(j - 1);
      head_ = (head_ + 1) & mask_;
    } else {
      for (std::size_t j = i; j + 1 < size_; ++j) At(j) = At(j + 1);
    }
    --size_;
    if (found.shape != shape_) --others_;
    if (found.priority != 0) --prioritised_;
    return found;
  }
  return std::nullopt;
}

}  // namespace tactus
