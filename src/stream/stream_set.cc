#include "stream/stream_set.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "stream/answer_json.h"
#include "stream/remote_sink.h"
#include "stream/service_sink.h"

namespace tactus {
namespace {

constexpr Duration kAgain = Seconds(5);

}  // namespace

Status StreamSet::Start(Entry& entry, const std::string& name, const StreamConfig& config) {
  std::shared_ptr<FrameSink> sink;
  if (config.server.url.empty()) {
    sink = MakeServiceSink(service_, config.model);
  } else if (auto remote = MakeRemoteSink(config.server, config.model)) {
    sink = *std::move(remote);
  } else {
    return InvalidArgument("the server that the stream sends to: " + remote.error().message);
  }
  entry.feed = std::make_unique<FrameFeed>();
  FrameFeed* const feed = entry.feed.get();
  if (config.webhook) {
    entry.webhook = std::make_unique<Webhook>(*config.webhook, feed->Watch(FeedKind::kLines));
  }
  auto runner = std::make_unique<StreamRunner>(
      name, config,
      StreamParts{.sink = std::move(sink),
                  .on_answer = [feed](const AnsweredFrame& frame) { feed->Publish(frame); },
                  .open = open_});
  if (Status started = runner->Start(); !started) return started;
  entry.runner = std::move(runner);
  return {};
}

Status StreamSet::Keep(const std::filesystem::path& path) {
  auto kept = KeptStreams::Read(path);
  if (!kept) return std::unexpected(std::move(kept.error()));
  for (const auto& [name, description] : kept->all()) {
    auto config = ParseStreamConfig(description);
    if (!config) return std::unexpected(std::move(config.error()));
    awaited_[name] = {.config = *std::move(config), .why = "it is being added"};
  }
  kept_ = *std::move(kept);
  return {};
}

void StreamSet::AddKept(std::function<void(const std::string&)> log) {
  log_ = std::move(log);
  again_.Start("streams", [this] { return AddAwaited() ? RepeatedTask::kUntilWoken : kAgain; });
}

bool StreamSet::AddAwaited() {
  std::map<std::string, Awaited> awaited;
  {
    const std::lock_guard lock(mutex_);
    awaited = awaited_;
  }
  for (const auto& [name, stream] : awaited) {
    const std::lock_guard one_at_a_time(kept_mutex_);
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return true;
      if (!awaited_.contains(name)) continue;  // removed, or added anew
    }
    const Status put = Put(name, stream.config);
    if (put) continue;
    const std::lock_guard lock(mutex_);
    const auto still = awaited_.find(name);
    if (stopped_ || still == awaited_.end()) continue;
    if (still->second.why != put.error().message) {
      log_(fmt::format("stream '{}' does not run yet, and is tried again: {}", name,
                       put.error().message));
    }
    still->second.why = put.error().message;
  }
  const std::lock_guard lock(mutex_);
  return awaited_.empty();
}

Status StreamSet::Add(const std::string& name, const StreamConfig& config,
                      std::string_view description) {
  const std::lock_guard lock(kept_mutex_);
  if (Status put = Put(name, config); !put || !kept_) return put;
  Status kept = kept_->Put(name, description);
  if (kept) return kept;
  static_cast<void>(End(name));
  return Fail(kept.error().code, "the stream would not outlast a restart: " + kept.error().message);
}

Status StreamSet::Put(const std::string& name, const StreamConfig& config) {
  if (!IsStreamName(name)) {
    return InvalidArgument("a stream's name has 1 to 64 letters, digits, '.', '_' and '-'");
  }
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return Fail(ErrorCode::kUnavailable, "the server is stopping");
    if (streams_.size() >= kMost) {
      return Fail(
          ErrorCode::kResourceExhausted,
          fmt::format("there are {} streams, the largest number allowed: remove one first", kMost));
    }
    if (!streams_.emplace(name, nullptr).second) {
      return Fail(ErrorCode::kAlreadyExists,
                  fmt::format("there is a stream '{}': remove it first", name));
    }
  }
  auto entry = std::make_shared<Entry>();
  Status started = Start(*entry, name, config);
  const std::lock_guard lock(mutex_);
  if (started && stopped_) started = Fail(ErrorCode::kUnavailable, "the server is stopping");
  if (!started) {
    streams_.erase(name);
    return started;
  }
  streams_[name] = std::move(entry);
  awaited_.erase(name);
  return {};
}

Status StreamSet::Remove(const std::string& name) {
  const std::lock_guard lock(kept_mutex_);
  if (kept_) {
    if (Status erased = kept_->Erase(name); !erased) return erased;
    const std::lock_guard lists(mutex_);
    if (awaited_.erase(name) > 0 && !streams_.contains(name)) return {};
  }
  return End(name);
}

Status StreamSet::End(const std::string& name) {
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    const auto place = streams_.find(name);
    if (place == streams_.end() || place->second == nullptr) {
      return NotFound(fmt::format("there is no stream '{}'", name));
    }
    entry = std::move(place->second);
    streams_.erase(place);
  }
  entry->feed->End();
  entry->runner->Stop();
  return {};
}

void StreamSet::Stop() {
  std::map<std::string, std::shared_ptr<Entry>> streams;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    streams = std::exchange(streams_, {});
  }
  again_.Stop();
  std::erase_if(streams, [](const auto& each) { return each.second == nullptr; });  // Add ends it
  // All are asked before any is waited for.
  for (const auto& [name, entry] : streams) {
    entry->feed->End();
    entry->runner->AskToStop();
  }
  for (const auto& [name, entry] : streams) entry->runner->Stop();
}

Expected<std::shared_ptr<StreamSet::Entry>> StreamSet::Find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto place = streams_.find(name);
  if (place != streams_.end() && place->second != nullptr) return place->second;
  return NotFound(fmt::format("there is no stream '{}'", name));
}

std::string StreamSet::ListJson() const {
  std::set<std::string> names;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, entry] : streams_) names.insert(name);
    for (const auto& [name, stream] : awaited_) names.insert(name);
  }
  std::string list;
  for (const std::string& name : names) {
    const auto json = Json(name);
    if (json) list += (list.empty() ? "" : ",") + *json;
  }
  return fmt::format(R"({{"streams":[{}]}})", list);
}

Expected<std::string> StreamSet::Json(const std::string& name) const {
  const auto entry = Find(name);
  if (!entry) {
    const std::lock_guard lock(mutex_);
    const auto awaited = awaited_.find(name);
    if (awaited == awaited_.end()) return std::unexpected(entry.error());
    return ToJson(name, awaited->second.config, StreamReading{.error = awaited->second.why});
  }
  const StreamRunner& runner = *(*entry)->runner;
  if (!(*entry)->webhook) return ToJson(name, runner.config(), runner.reading());
  const WebhookReading webhook = (*entry)->webhook->reading();
  return ToJson(name, runner.config(), runner.reading(), &webhook);
}

Expected<std::shared_ptr<FeedWatcher>> StreamSet::Watch(const std::string& name,
                                                        FeedKind kind) const {
  const auto entry = Find(name);
  if (!entry) return std::unexpected(entry.error());
  return (*entry)->feed->Watch(kind);
}

std::vector<StreamSet::Reading> StreamSet::readings() const {
  std::vector<std::pair<std::string, std::shared_ptr<Entry>>> entries;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, entry] : streams_) {
      if (entry != nullptr) entries.emplace_back(name, entry);
    }
  }
  std::vector<Reading> readings;
  for (const auto& [name, entry] : entries) {
    Reading& reading = readings.emplace_back(name, entry->runner->reading());
    if (entry->webhook) reading.webhook = entry->webhook->reading();
  }
  return readings;
}

}  // namespace tactus
