// A body that goes on for as long as a watcher hears of something.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "server/http/http_message.h"
#include "stream/frame_feed.h"

namespace tactus {

class WatchedBody final : public LongBody {
 public:
  explicit WatchedBody(std::shared_ptr<FeedWatcher> watcher) : watcher_(std::move(watcher)) {}
  ~WatchedBody() override { watcher_->Leave(); }

  void Next(std::move_only_function<void(std::string)> ready) override {
    watcher_->Next(std::move(ready));
  }
  void Leave() override { watcher_->Leave(); }

 private:
  const std::shared_ptr<FeedWatcher> watcher_;
};

}  // namespace tactus
