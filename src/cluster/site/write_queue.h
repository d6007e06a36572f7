// Messages to the other end of a stream, of which gRPC writes one at a time. Not thread-safe: its
// stream's lock guards it.
#pragma once

#include <deque>
#include <utility>

namespace tactus {

template <class Message>
class WriteQueue {
 public:
  // The messages that nobody writes yet, in order.
  std::deque<Message>& waiting() { return waiting_; }
  // The one to write now, which stays until Written; null where another is being written or none
  // waits.
  const Message* Next() {
    if (writing_ || waiting_.empty()) return nullptr;
    current_ = std::move(waiting_.front());
    waiting_.pop_front();
    writing_ = true;
    return &current_;
  }
  void Written() { writing_ = false; }

 private:
  std::deque<Message> waiting_;
  Message current_;
  bool writing_ = false;
};

}  // namespace tactus
