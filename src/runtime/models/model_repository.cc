#include "runtime/models/model_repository.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/memory_guard.h"
#include "runtime/models/model_host.h"
#include "service/same_tensors.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

// A front end that found a model hands its call in within this time; else the call is refused.
constexpr std::chrono::milliseconds kBetweenFindAndInfer{10};

// How often a load begins whose files change meanwhile, as while somebody copies them.
constexpr int kLoads = 3;
constexpr Duration kLongLoad = Seconds(10);
constexpr std::size_t kLoaders = 4;  // threads at a start: each may hold a model's files twice

// Begins with Triton's words, which clients look for.
constexpr const char* kNotExplicit =
    "explicit model load / unload is not allowed if polling is enabled or models are loaded at the "
    "start alone: start with --model-control-mode explicit";

constexpr const char* kUnloaded = "unloaded";

// Of the machine's clock, which files are dated by: ns since 1970.
std::int64_t Today() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string BatchesOf(const ModelSpec& spec) {
  return spec.max_batch > 0 ? fmt::format("batches of at most {}", spec.max_batch) : "no batches";
}

std::string SloOf(const ModelSpec& spec) {
  return spec.slo > Duration{} ? fmt::format("SLO {:.6g} ms", ToMillis(spec.slo)) : "no SLO";
}

// Parameters that are not told by themselves.
std::map<std::string, std::string> RestOf(std::map<std::string, std::string> parameters) {
  for (const char* const told : {"slo_ms", "priority"}) parameters.erase(told);
  return parameters;
}

// "SLO 100 ms -> SLO 50 ms, other files".
std::string ChangesOf(const ModelSpec& before, const ModelSpec& now) {
  std::vector<std::string> changes;
  const auto change = [&](const std::string& old, const std::string& fresh) {
    if (old != fresh) changes.push_back(fmt::format("{} -> {}", old, fresh));
  };
  change(SloOf(before), SloOf(now));
  change(fmt::format("priority {}", before.priority), fmt::format("priority {}", now.priority));
  change(BatchesOf(before), BatchesOf(now));
  change(fmt::format("{} exits", before.exits.size()), fmt::format("{} exits", now.exits.size()));
  if (!SameTensors(before.inputs, now.inputs)) changes.push_back("other inputs");
  if (!SameTensors(before.outputs, now.outputs)) changes.push_back("other outputs");
  if (RestOf(before.parameters) != RestOf(now.parameters)) changes.push_back("other parameters");
  if (before.assumed_batch.has_value() != now.assumed_batch.has_value()) {
    changes.push_back(now.assumed_batch ? "its batch is assumed" : "its batch is declared");
  }
  if (before.contents != now.contents) changes.push_back("other files");
  return changes.empty() ? "nothing has changed" : fmt::format("{}", fmt::join(changes, ", "));
}

// A graph may be without end, and a start with it: whose it is must be known.
class LongLoads {
 public:
  explicit LongLoads(std::function<void(const std::string&)> say)
      : say_(std::move(say)),
        look_("long loads", Every(kLongLoad, [this] { Look(); }), kLongLoad) {}

  void Begin(const std::string& model) {
    const std::lock_guard lock(mutex_);
    since_[model] = std::chrono::steady_clock::now();
  }
  void End(const std::string& model) {
    const std::lock_guard lock(mutex_);
    since_.erase(model);
  }

 private:
  void Look() {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(since_, [&](const auto& load) {
      if (now - load.second < kLongLoad) return false;
      say_(fmt::format("model '{}' is still being loaded and tried, and the start waits for it",
                       load.first));
      return true;  // it is said once
    });
  }

  const std::function<void(const std::string&)> say_;
  std::mutex mutex_;
  std::map<std::string, std::chrono::steady_clock::time_point> since_;
  RepeatedTask look_;  // last: it uses the others
};

}  // namespace

ModelRepository::ModelRepository(RepositoryOptions options, Duration unload_grace, ModelHost& host,
                                 std::function<void(const std::string&)> log,
                                 std::function<void(const std::string&)> news)
    : options_(std::move(options)),
      unload_grace_(unload_grace),
      host_(host),
      log_(std::move(log)),
      news_(std::move(news)) {}

Expected<std::vector<std::string>> ModelRepository::Folders() const {
  if (options_.folders == nullptr) return std::vector<std::string>();
  auto folders = options_.folders->List();
  for (const std::string& line : options_.folders->NewlyUnnamed()) Say(line);
  if (folders && options_.skips) {
    std::erase_if(*folders, [this](const std::string& name) {
      return options_.skips(options_.folders->Of(name));
    });
  }
  return folders;
}

Expected<std::vector<std::int64_t>> ModelRepository::VersionsOf(const fs::path& folder,
                                                                const std::string& config) const {
  if (options_.versions) return options_.versions(folder, config);
  std::int64_t latest = 0;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    latest = std::max(latest, VersionNumber(it->path().filename().string()).value_or(0));
  }
  return std::vector<std::int64_t>{latest > 0 ? latest : 1};
}

// What fails once the engines are abandoned, fails for that.
void ModelRepository::Say(const std::string& line) const {
  if (log_ && !host_.abandoned()) log_(line);
}

Expected<std::shared_ptr<std::mutex>> ModelRepository::OperationLock(const std::string& model) {
  const std::unique_lock lock(mutex_);
  if (closed_) return Fail(ErrorCode::kUnavailable, "the server is stopping");
  std::shared_ptr<std::mutex>& operation = operations_[model];
  if (operation == nullptr) operation = std::make_shared<std::mutex>();
  return operation;
}

Status ModelRepository::Open() {
  const auto folders = Folders();
  if (!folders) return std::unexpected(folders.error());
  std::vector<std::string> names = *folders;
  if (options_.control == ModelControl::kExplicit &&
      std::find(options_.load.begin(), options_.load.end(), "*") == options_.load.end()) {
    names = options_.load;
    if (options_.skips) {
      std::erase_if(names, [this](const std::string& name) {
        return options_.skips(options_.folders->Of(name));
      });
    }
  }
  host_.PublishTogether([&] { LoadAll(names); });
  opened_ = true;
  if (options_.control == ModelControl::kPoll) {
    const Duration period = options_.poll_interval;
    poller_.Start("poll models", Every(period, [this] { Poll(); }), period);
  }
  return {};
}

void ModelRepository::LoadAll(const std::vector<std::string>& models) {
  LongLoads under_way([this](const std::string& line) { Say(line); });
  std::atomic<std::size_t> next{0};
  const auto load = [&] {
    for (std::size_t at = next++; at < models.size(); at = next++) {
      under_way.Begin(models[at]);
      // The index keeps the reason; the others serve.
      if (Status loaded = LoadFolder(models[at], ""); !loaded) {
        Say(loaded.error().message);
        Miss(models[at], loaded.error().message);
      }
      under_way.End(models[at]);
    }
  };
  const std::size_t threads = std::min(
      {models.size(), kLoaders, static_cast<std::size_t>(std::thread::hardware_concurrency())});
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < threads; ++i) {
    try {
      others.emplace_back(load);
    } catch (const std::system_error&) {
      break;  // a thread less is no failure
    }
  }
  load();
}

// A model that was asked for and has no folder: the server is not ready without it.
void ModelRepository::Miss(const std::string& model, const std::string& reason) {
  const std::unique_lock lock(mutex_);
  const auto [entry, made] = entries_.try_emplace(model);
  if (made) entry->second.versions[1].reason = reason;
}

Status ModelRepository::Load(const std::string& model, const std::string& config) {
  if (options_.control != ModelControl::kExplicit) {
    return Fail(ErrorCode::kUnavailable, kNotExplicit);
  }
  Status loaded = LoadFolder(model, config);
  if (!loaded) Say(fmt::format("model '{}' was to be loaded: {}", model, loaded.error().message));
  return loaded;
}

Status ModelRepository::LoadFolder(const std::string& model, const std::string& given) {
  if (options_.folders == nullptr) {
    return NotFound(fmt::format("model '{}' is not in the model repository", model));
  }
  if (Status fine = options_.folders->Check(model); !fine) return fine;
  const auto operation = OperationLock(model);
  if (!operation) return std::unexpected(operation.error());
  const std::lock_guard one_at_a_time(**operation);
  const fs::path folder = options_.folders->Of(model);  // now: the load before may have changed it
  // An override holds until another one, or until the model is unloaded.
  const std::string config = given.empty() ? OverrideOf(model) : given;
  const FolderStamp stamp = FolderStamp::Of(folder, Today());
  const auto versions = VersionsOf(folder, config);
  std::vector<std::int64_t> gone;
  {
    const std::unique_lock lock(mutex_);
    Entry& entry = entries_[model];
    entry.stamp = stamp;
    if (!versions) {
      Version& version =
          entry.versions[entry.versions.empty() ? 1 : entry.versions.rbegin()->first];
      if (version.served == nullptr) version.state = State::kUnavailable;
      version.reason = versions.error().message;
      return std::unexpected(versions.error());
    }
    for (const auto& [number, version] : entry.versions) {
      if (std::find(versions->begin(), versions->end(), number) == versions->end()) {
        gone.push_back(number);
      }
    }
  }
  Status result;
  for (const std::int64_t version : *versions) {
    Status loaded = LoadVersion(folder, model, version, config);
    if (!loaded && result) result = loaded;
  }
  {
    const std::unique_lock lock(mutex_);
    Entry& entry = entries_[model];
    if (result) entry.config = config;
    const auto serves = [&entry](std::int64_t version) {
      return entry.versions[version].served != nullptr;
    };
    // What serves is not given up for versions of which none does: the model stays as it was.
    if (!std::ranges::any_of(*versions, serves) && std::ranges::any_of(gone, serves)) {
      for (const std::int64_t version : *versions) entry.versions[version].wanted = false;
      gone.clear();
    }
  }
  // Last, so that a model always has a version that serves while it goes from one to the next.
  for (const std::int64_t version : gone) Remove(model, version, "replaced by another version");
  return result;
}

std::string ModelRepository::OverrideOf(const std::string& model) const {
  const std::shared_lock lock(mutex_);
  const auto entry = entries_.find(model);
  return entry == entries_.end() ? std::string() : entry->second.config;
}

Status ModelRepository::LoadVersion(const fs::path& folder, const std::string& model,
                                    std::int64_t version, const std::string& config) {
  {
    const std::unique_lock lock(mutex_);
    Version& entry = entries_[model].versions[version];
    entry.wanted = true;
    if (entry.served == nullptr) entry.state = State::kLoading;
  }
  Status put;
  for (int left = kLoads; left > 0; --left) {
    put = Put(model, version, WithMemory(fmt::format("model '{}'", model), [&] {
                return options_.read(folder, version, config);
              }));
    if (put || put.error().code != kFilesChanged) break;
  }
  return put;
}

Status ModelRepository::Serve(ModelSpec spec) {
  const std::string model = spec.name;
  const std::int64_t version = spec.version;
  const auto operation = OperationLock(model);
  if (!operation) return std::unexpected(operation.error());
  const std::lock_guard one_at_a_time(**operation);
  return Put(model, version, std::move(spec));
}

Status ModelRepository::Put(const std::string& model, std::int64_t version,
                            Expected<ModelSpec> spec) {
  Expected<std::shared_ptr<ServedModel>> fresh =
      WithMemory(fmt::format("model '{}'", model), [&]() -> Expected<std::shared_ptr<ServedModel>> {
        if (!spec) return std::unexpected(spec.error());
        return host_.Prepare(*std::move(spec));
      });
  if (!fresh) {
    const std::unique_lock lock(mutex_);
    Version& entry = entries_[model].versions[version];
    // What served before goes on serving.
    if (entry.served == nullptr) entry.state = State::kUnavailable;
    entry.reason = fresh.error().message;
    return std::unexpected(fresh.error());
  }
  host_.Publish(*fresh);
  std::shared_ptr<ServedModel> old;
  {
    const std::unique_lock lock(mutex_);
    Version& entry = entries_[model].versions[version];
    old = std::exchange(entry.served, *fresh);
    entry.state = State::kReady;
    entry.reason.clear();
    entry.wanted = true;
    serving_[&(*fresh)->spec] = *fresh;
  }
  const ModelSpec& now = (*fresh)->spec;
  Tell(now, old == nullptr ? fmt::format("loaded: {}, {}", BatchesOf(now), SloOf(now))
                           : "loaded anew: " + ChangesOf(old->spec, now));
  if (old != nullptr) Withdraw(old);
  return {};
}

void ModelRepository::Tell(const ModelSpec& spec, const std::string& what) const {
  if (news_ && opened_) {
    news_(fmt::format("model '{}' version {}: {}", spec.name, spec.version, what));
  }
}

bool ModelRepository::Serves(const ServedModel& old) const {
  const std::shared_lock lock(mutex_);
  const auto entry = entries_.find(old.spec.name);
  if (entry == entries_.end()) return false;
  const auto found = entry->second.versions.find(old.spec.version);
  return found != entry->second.versions.end() && found->second.served.get() == &old;
}

Status ModelRepository::Replace(const ServedModel& old, ModelSpec spec) {
  const std::string model = spec.name;
  const std::int64_t version = spec.version;
  Status put;
  {
    const auto operation = OperationLock(model);
    if (!operation) return std::unexpected(operation.error());
    const std::lock_guard one_at_a_time(**operation);
    if (!Serves(old)) return {};
    put = Put(model, version, std::move(spec));
  }
  if (!put && put.error().code == kFilesChanged) return LoadChanged(old);
  return put;
}

Status ModelRepository::LoadChanged(const ServedModel& old) {
  const std::string& model = old.spec.name;
  if (!old.files_changed.exchange(true)) {
    Say(
        fmt::format("model '{}': its files have changed since it was loaded; what they hold now is "
                    "loaded, with all checks of a load",
                    model));
  }
  Status loaded = LoadFolder(model, "");
  if (loaded) Say(fmt::format("model '{}': its new files serve", model));
  return loaded;
}

void ModelRepository::FilesChanged(const ServedModel& old) {
  if (!Serves(old)) return;
  const auto reason = [&] {
    const std::shared_lock lock(mutex_);
    return entries_.find(old.spec.name)->second.versions.find(old.spec.version)->second.reason;
  };
  const std::string before = reason();
  const Status loaded = LoadChanged(old);
  if (!loaded && before != reason()) Say(loaded.error().message);
}

Status ModelRepository::StopBatching(const ServedModel& old, const std::string& why) {
  ModelSpec spec = old.spec;
  spec.max_batch = 0;
  spec.rows_in_front = true;
  spec.batch_origin = BatchOrigin::kDisproved;
  spec.parameters["batching_stopped"] = why;
  Status replaced = Replace(old, std::move(spec));
  if (!old.batching_stopped.exchange(true)) {
    Say(replaced ? fmt::format(
                       "model '{}' runs in batches no more, each request runs alone: it was "
                       "{} to, and {}",
                       old.spec.name,
                       old.spec.batch_origin == BatchOrigin::kAssumed ? "assumed" : "declared", why)
                 : fmt::format("model '{}' should run in batches no more, since {}; it cannot be "
                               "loaded without: {}",
                               old.spec.name, why, replaced.error().message));
  }
  return replaced;
}

void ModelRepository::TryAgain(const ServedModel& old, const std::map<std::string, Shape>& shapes) {
  // As many rows as an assumed batch takes at most; larger calls would be refused from then on.
  constexpr int kTritonsDefault = 4;
  ModelSpec spec = old.spec;
  if (spec.max_batch == 0) {  // else somebody has declared it
    const int assumed = spec.assumed_batch.value_or(-1);
    const int most = assumed < 0 ? kTritonsDefault : assumed;
    for (const auto& [input, shape] : shapes) {
      if (!shape.empty() && shape[0] > most) return;
    }
    spec.max_batch = assumed;
  }
  spec.found_shapes = shapes;
  if (Status tried = Replace(old, std::move(spec)); !tried) Say(tried.error().message);
}

Status ModelRepository::Unload(const std::string& model) {
  if (options_.control != ModelControl::kExplicit) {
    return Fail(ErrorCode::kUnavailable, kNotExplicit);
  }
  const auto operation = OperationLock(model);
  if (!operation) return std::unexpected(operation.error());
  const std::lock_guard one_at_a_time(**operation);
  std::vector<std::int64_t> versions;
  {
    const std::unique_lock lock(mutex_);
    const auto it = entries_.find(model);
    if (it == entries_.end()) {
      return NotFound(fmt::format("model '{}' is not loaded", model));
    }
    it->second.config.clear();
    for (const auto& [number, version] : it->second.versions) versions.push_back(number);
  }
  for (const std::int64_t version : versions) Remove(model, version, kUnloaded);
  return {};
}

void ModelRepository::Remove(const std::string& model, std::int64_t version,
                             const std::string& reason) {
  std::shared_ptr<ServedModel> old;
  {
    const std::unique_lock lock(mutex_);
    Version& entry = entries_[model].versions[version];
    entry.wanted = false;
    old = std::exchange(entry.served, nullptr);
    entry.state = old != nullptr ? State::kUnloading : State::kUnavailable;
    if (old == nullptr) entry.reason = reason;
  }
  if (old == nullptr) return;
  Withdraw(old);
  Tell(old->spec, reason == kUnloaded ? reason : fmt::format("{}: {}", kUnloaded, reason));
  const std::unique_lock lock(mutex_);
  Version& entry = entries_[model].versions[version];
  entry.state = State::kUnavailable;
  entry.reason = reason;
}

void ModelRepository::Close() {
  StopPolling();
  std::vector<std::shared_ptr<std::mutex>> operations;
  {
    const std::unique_lock lock(mutex_);
    closed_ = true;
    for (const auto& [name, operation] : operations_) operations.push_back(operation);
  }
  for (const auto& operation : operations) const std::lock_guard wait(*operation);
}

void ModelRepository::Withdraw(const std::shared_ptr<ServedModel>& old) {
  std::this_thread::sleep_for(std::min<Duration>(kBetweenFindAndInfer, unload_grace_));
  host_.AwaitIdle(*old, unload_grace_);
  {
    const std::unique_lock lock(mutex_);
    serving_.erase(&old->spec);
  }
  host_.Retire(old, unload_grace_);
}

void ModelRepository::RetireAll() {
  std::vector<std::shared_ptr<ServedModel>> all;
  {
    const std::unique_lock lock(mutex_);
    for (auto& [name, entry] : entries_) {
      for (auto& [number, version] : entry.versions) {
        if (version.served == nullptr) continue;
        all.push_back(std::exchange(version.served, nullptr));
        version.state = State::kUnavailable;
        version.reason = "the server is stopping";
      }
    }
    serving_.clear();
  }
  for (const auto& model : all) host_.Retire(model, Duration{});
}

void ModelRepository::Poll() {
  const auto folders = Folders();
  if (!folders) return Say(folders.error().message);
  std::map<std::string, FolderStamp> known;
  std::vector<std::pair<std::string, std::int64_t>> gone;
  {
    const std::shared_lock maps(mutex_);
    for (const auto& [name, entry] : entries_) {
      known[name] = entry.stamp;
      if (std::binary_search(folders->begin(), folders->end(), name)) continue;
      for (const auto& [number, version] : entry.versions) {
        if (version.served != nullptr) gone.emplace_back(name, number);
      }
    }
  }
  for (const std::string& name : *folders) {
    const auto it = known.find(name);
    if (it != known.end() && it->second.StillHolds(options_.folders->Of(name), Today())) {
      const std::unique_lock maps(mutex_);
      entries_[name].stamp = it->second;
      continue;
    }
    if (Status loaded = LoadFolder(name, ""); !loaded) Say(loaded.error().message);
  }
  for (const auto& [name, version] : gone) {
    Remove(name, version, "its folder is gone");
    const std::unique_lock maps(mutex_);
    entries_[name].stamp = {};  // a folder that comes back is loaded, whatever its age
  }
}

}  // namespace tactus
