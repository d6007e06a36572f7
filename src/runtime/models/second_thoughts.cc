#include "runtime/models/second_thoughts.h"

#include <utility>

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
  {
    const std::lock_guard lock(mutex_);
    if (!queue_) queue_.emplace("thoughts");
  }
  queue_->Post([work = std::move(work)](bool) { work(); });
}

void SecondThoughts::Stop() {
  const std::lock_guard lock(mutex_);
  if (queue_) queue_->Stop();
}

}  // namespace tactus
