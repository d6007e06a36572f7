#include "runtime/models/second_thoughts.h"

#include <utility>

#include "platform/cpu_affinity.h"

namespace tactus {

// The call's views may be of what the model owns, so it lives until the answer.
void SecondThoughts::NotBatched(InferCall&& call, std::shared_ptr<ServedModel> model, Error why) {
  auto kept = std::make_shared<InferCall>(std::move(call));
  Do([this, kept, model = std::move(model), why = std::move(why)] {
    const Status served = options_.stop_batching(*model, why.message);
    kept->reply = [model, answer = std::move(kept->reply)](InferReply&& reply) {
      answer(std::move(reply));
    };
    const bool stopping = !served && served.error().code == ErrorCode::kUnavailable;
    options_.infer(std::move(*kept), served || stopping ? served : std::unexpected(why));
  });
}

void SecondThoughts::Shown(std::shared_ptr<ServedModel> model,
                           std::map<std::string, Shape> shapes) {
  Do([this, model = std::move(model), shapes = std::move(shapes)] {
    options_.try_again(*model, shapes);
  });
}

void SecondThoughts::Do(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  changed_.notify_one();
}

void SecondThoughts::Run() {
  NameThisThread("thoughts");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !work_.empty(); });
    if (work_.empty()) return;
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

void SecondThoughts::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    if (!thread_.joinable()) return;
  }
  changed_.notify_one();
  thread_.join();
}

}  // namespace tactus
