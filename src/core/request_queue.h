// The waiting requests of one model, earliest deadline first; equal deadlines in order of id.
//
// A ring sorted by deadline. With one SLO per model requests arrive in deadline order, so a push is
// an append. A request with a deadline of its own is moved into place from the tail. Storage is
// taken once; the system gives memory for it as far as requests ever waited, so that a queue of
// which little is used costs little. Not thread-safe: the dispatcher owns it, policies read it.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <optional>

#include "base/check.h"
#include "core/request.h"

namespace tactus {

class RequestQueue {
 public:
  RequestQueue() = default;
  // Holds at least `capacity` requests; rounded up to a power of two inside, `capacity` is the
  // limit.
  explicit RequestQueue(std::size_t capacity);

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t capacity() const { return capacity_; }
  bool full() const { return size_ == capacity_; }

  // By position in deadline order; 0 is the most urgent.
  const Request& operator[](std::size_t i) const { return cells_[(head_ + i) & mask_]; }
  const Request& front() const { return (*this)[0]; }

  // How many requests at the head may run as one batch: same shape, at most `limit`.
  int Batchable(int limit) const;

  // The highest priority of the first `limit` requests; 1 is the highest, and a request without one
  // of its own has `otherwise`. Not empty.
  int Priority(int limit, int otherwise) const;

  // False when full.
  bool Push(const Request& request);
  // Drops the first n; n <= size().
  void PopFront(std::size_t n);
  // Takes one out of the middle, O(size). Nothing if it is not here.
  std::optional<Request> Remove(RequestId id);

 private:
  Request& At(std::size_t i) { return cells_[(head_ + i) & mask_]; }

  std::size_t capacity_ = 0;
  std::size_t mask_ = 0;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
  // Requests of another shape than `shape_`, that of the first one that came when none waited:
  // while there are none, nothing has to be counted.
  std::size_t others_ = 0;
  std::uint32_t shape_ = 0;
  std::size_t prioritised_ = 0;  // requests with a priority of their own
  struct FreeCells {
    void operator()(Request* cells) const { ::operator delete(cells); }
  };
  std::unique_ptr<Request[], FreeCells> cells_;  // not written to before there is a request
};

}  // namespace tactus
