// The streams of a server, by name: added and removed while it serves.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "platform/repeated_task.h"
#include "service/inference_service.h"
#include "stream/frame_feed.h"
#include "stream/kept_streams.h"
#include "stream/stream_runner.h"
#include "stream/webhook.h"

namespace tactus {

// Thread-safe.
class StreamSet {
 public:
  static constexpr std::size_t kMost = 64;

  // `service` outlives the set. `open` is for tests.
  explicit StreamSet(InferenceService& service, SourceOpener open = OpenVideo)
      : service_(service), open_(std::move(open)) {}
  ~StreamSet() { Stop(); }

  // Streams that come and go from now on are kept in this file. Once, before any other call.
  // InvalidArgument for a file that is wrong.
  Status Keep(const std::filesystem::path& path);
  // Adds what the file holds, on a thread of its own, and again every few seconds while a model is
  // not there. Once, after Keep.
  void AddKept(std::function<void(const std::string&)> log);

  // `description`: what `config` was read from, to be kept. AlreadyExists; ResourceExhausted beyond
  // kMost; InvalidArgument for a wrong name; what the model's server says; why it is not kept. A
  // source that cannot be opened is no error: it is tried again. Blocks for seconds where another
  // server does not answer.
  Status Add(const std::string& name, const StreamConfig& config,
             std::string_view description = "");
  // NotFound. Returns when the stream's last frame has ended; its watchers end too.
  Status Remove(const std::string& name);
  // Removes all; Add fails from now on.
  void Stop();

  // Each as ToJson of answer_json.h. NotFound.
  std::string ListJson() const;
  Expected<std::string> Json(const std::string& name) const;
  Expected<std::shared_ptr<FeedWatcher>> Watch(const std::string& name, FeedKind kind) const;
  struct Reading {
    std::string name;
    StreamReading frames;
    std::optional<WebhookReading> webhook;  // where it has one
  };
  std::vector<Reading> readings() const;

 private:
  struct Entry {
    std::unique_ptr<StreamRunner> runner;  // null while it is being added
    std::unique_ptr<FrameFeed> feed;
    std::unique_ptr<Webhook> webhook;  // null: none
    ~Entry() {
      if (feed) feed->End();
      runner.reset();  // its answers go to the feed
    }
  };

  // What the file holds and does not run yet: why not.
  struct Awaited {
    StreamConfig config;
    std::string why;
  };
  Status Put(const std::string& name, const StreamConfig& config);
  Status End(const std::string& name);
  // Tries all that are awaited; whether none is left.
  bool AddAwaited();
  Expected<std::shared_ptr<Entry>> Find(const std::string& name) const;
  Status Start(Entry& entry, const std::string& name, const StreamConfig& config);

  InferenceService& service_;
  const SourceOpener open_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> streams_;
  std::map<std::string, Awaited> awaited_;
  bool stopped_ = false;

  std::mutex kept_mutex_;  // before `mutex_`
  std::optional<KeptStreams> kept_;
  std::function<void(const std::string&)> log_;
  RepeatedTask again_;  // last: it uses the others
};

}  // namespace tactus
