// A thread that is made before there is anything to do for it: what has to be done when there may
// be no room for another thread, such as a stop, is done on one.
#pragma once

#include <functional>
#include <future>
#include <thread>
#include <utility>

namespace tactus {

class ReadyThread {
 public:
  ReadyThread() : thread_([given = given_.get_future()]() mutable { given.get()(); }) {}
  // Waits for what was started.
  ~ReadyThread() {
    if (!started_) Start([] {});
    thread_.join();
  }
  ReadyThread(const ReadyThread&) = delete;
  ReadyThread& operator=(const ReadyThread&) = delete;

  // Once. `work` ends before what it refers to does.
  void Start(std::function<void()> work) {
    started_ = true;
    given_.set_value(std::move(work));
  }

 private:
  bool started_ = false;
  std::promise<std::function<void()>> given_;
  std::thread thread_;
};

}  // namespace tactus
