// The streams of a server, by name: added and removed while it serves.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/expected.h"
#include "service/inference_service.h"
#include "stream/frame_feed.h"
#include "stream/stream_runner.h"

namespace tactus {

// Thread-safe.
class StreamSet {
 public:
  static constexpr std::size_t kMost = 64;

  // `service` outlives the set. `open` is for tests.
  explicit StreamSet(InferenceService& service, SourceOpener open = OpenVideo)
      : service_(service), open_(std::move(open)) {}
  ~StreamSet() { Stop(); }

  // AlreadyExists, ResourceExhausted beyond kMost, InvalidArgument for a wrong name, or what the
  // model's server says. A source that cannot be opened is no error: it is tried again. Blocks for
  // seconds where another server does not answer.
  Status Add(const std::string& name, const StreamConfig& config);
  // NotFound. Returns when the stream's last frame has ended; its watchers end too.
  Status Remove(const std::string& name);
  // Removes all; Add fails from now on.
  void Stop();

  // Each as ToJson of answer_json.h. NotFound.
  std::string ListJson() const;
  Expected<std::string> Json(const std::string& name) const;
  Expected<std::shared_ptr<FeedWatcher>> Watch(const std::string& name, FeedKind kind) const;
  std::vector<std::pair<std::string, StreamReading>> readings() const;

 private:
  struct Entry {
    std::unique_ptr<StreamRunner> runner;  // null while it is being added
    std::unique_ptr<FrameFeed> feed;
    ~Entry() {
      if (feed) feed->End();
      runner.reset();  // its answers go to the feed
    }
  };

  Expected<std::shared_ptr<Entry>> Find(const std::string& name) const;
  Status Start(Entry& entry, const std::string& name, const StreamConfig& config);

  InferenceService& service_;
  const SourceOpener open_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> streams_;
  bool stopped_ = false;
};

}  // namespace tactus
