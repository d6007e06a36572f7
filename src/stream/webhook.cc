#include "stream/webhook.h"

#include <algorithm>
#include <condition_variable>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "platform/repeated_task.h"

namespace tactus {
namespace {

constexpr Duration kTimeout = Seconds(5);
constexpr Duration kFirstPause = Seconds(1);
constexpr Duration kLongestPause = Seconds(30);

// One piece that a watcher was asked for; the watcher may hold it longer than who asked.
struct Asked {
  std::mutex mutex;
  std::condition_variable_any came;
  std::optional<std::string> piece;
};

// The next piece, empty at the end; nothing after a stop.
std::optional<std::string> Await(FeedWatcher& watcher, const std::stop_token& stop) {
  const auto asked = std::make_shared<Asked>();
  watcher.Next([asked](std::string piece) {
    {
      const std::lock_guard lock(asked->mutex);
      asked->piece = std::move(piece);
    }
    asked->came.notify_one();
  });
  std::unique_lock lock(asked->mutex);
  asked->came.wait(lock, stop, [&] { return asked->piece.has_value(); });
  return std::move(asked->piece);
}

bool MayPass(int status) { return status == 408 || status == 429 || status >= 500; }

}  // namespace

std::string_view Name(WebhookEnd end) {
  constexpr std::array<std::string_view, kWebhookEnds> kNames = {"sent", "refused", "missed"};
  return kNames[static_cast<std::size_t>(end)];
}

Webhook::Webhook(HttpUrl to, std::shared_ptr<FeedWatcher> answers)
    : to_(std::move(to)),
      answers_(std::move(answers)),
      thread_([this](const std::stop_token& stop) { Work(stop); }) {}

Webhook::~Webhook() { answers_->Leave(); }

WebhookReading Webhook::reading() const {
  const std::uint64_t missed = answers_->missed();
  const std::lock_guard lock(mutex_);
  WebhookReading reading = reading_;
  reading.ends[static_cast<std::size_t>(WebhookEnd::kMissed)] = missed;
  return reading;
}

void Webhook::Work(const std::stop_token& stop) {
  for (;;) {
    const auto line = Await(*answers_, stop);
    if (!line || line->empty()) return;
    Duration pause = kFirstPause;
    while (!Post(*line, stop)) {
      if (!SleepUnlessStopped(pause, stop)) return;
      pause = std::min(2 * pause, kLongestPause);
    }
  }
}

bool Webhook::Post(const std::string& line, const std::stop_token& stop) {
  const auto reply = PostOnce(to_.endpoint, to_.path.empty() ? "/" : to_.path, "application/json",
                              line, kTimeout, stop);
  const std::lock_guard lock(mutex_);
  if (!reply) {
    reading_.error = reply.error().message;
    return false;
  }
  const bool taken = reply->status >= 200 && reply->status < 300;
  reading_.error = taken ? "" : fmt::format("it was answered with {}", reply->status);
  if (!taken && MayPass(reply->status)) return false;
  ++reading_.ends[static_cast<std::size_t>(taken ? WebhookEnd::kSent : WebhookEnd::kRefused)];
  return true;
}

}  // namespace tactus
