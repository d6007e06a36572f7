// A stream's answers for a program elsewhere: one POST of a line of JSON for each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "http_client/post.h"
#include "stream/frame_feed.h"

namespace tactus {

enum class WebhookEnd : std::uint8_t {
  kSent,     // answered with 2xx
  kRefused,  // answered with another status, which is not one of those below: not sent again
  kMissed,   // pushed out by newer ones while the receiver was slow or away
};
inline constexpr std::size_t kWebhookEnds = 3;
std::string_view Name(WebhookEnd end);

struct WebhookReading {
  std::array<std::uint64_t, kWebhookEnds> ends{};
  std::string error;  // why the last POST failed; empty: it did not
};

// A thread of its own sends the answers in their order. Where no answer comes in five seconds, and
// at 408, 429 and 5xx, the same line is sent again after 1 s, 2 s, 4 s and so on up to 30: a
// receiver that took it and could not say so has it twice, with the same "frame".
class Webhook {
 public:
  // `answers`: of kind kLines, nobody else's.
  Webhook(HttpUrl to, std::shared_ptr<FeedWatcher> answers);
  // What waits is not sent.
  ~Webhook();

  WebhookReading reading() const;

 private:
  void Work(const std::stop_token& stop);
  // Whether it was sent or refused; else `error` says why not.
  bool Post(const std::string& line, const std::stop_token& stop);

  const HttpUrl to_;
  const std::shared_ptr<FeedWatcher> answers_;
  mutable std::mutex mutex_;
  WebhookReading reading_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace tactus
