// Which of the models in some folders should serve.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/expected.h"
#include "base/serving_time.h"
#include "core/engine.h"
#include "platform/repeated_task.h"
#include "runtime/models/folder_stamp.h"
#include "runtime/models/served_model.h"
#include "service/inference_service.h"
#include "service/model_folders.h"

namespace tactus {

enum class ModelControl {
  kNone,      // all models are loaded at the start; load and unload are refused
  kPoll,      // as kNone, then the folder is read every `poll_interval`
  kExplicit,  // `load` at the start, then as clients ask
};

struct RepositoryOptions {
  std::shared_ptr<const ModelFolders> folders;  // null: there are none
  ModelControl control = ModelControl::kNone;
  Duration poll_interval = Seconds(15);
  std::vector<std::string> load;  // kExplicit: loaded at the start; "*" means all

  // Reads one version of a model; `config` is a ModelConfig as JSON that replaces the folder's, or
  // empty. Given by the server, which knows the format of the configuration.
  std::function<Expected<ModelSpec>(const std::filesystem::path& model_folder, std::int64_t version,
                                    const std::string& config)>
      read;
  // The versions that should serve. Empty function: the latest numeric subfolder, or 1 if none.
  std::function<Expected<std::vector<std::int64_t>>(const std::filesystem::path& model_folder,
                                                    const std::string& config)>
      versions;
  // Folders that somebody else serves, such as ensembles: no models. Empty function: none.
  std::function<bool(const std::filesystem::path& model_folder)> skips;
};

class ModelHost;

// Which models and versions serve, and how each came to be as it is. Thread-safe. Loads and unloads
// run on the caller's thread, one at a time for each model and side by side for different ones;
// looking up a model never waits for them.
class ModelRepository {
 public:
  ModelRepository(RepositoryOptions options, Duration unload_grace, ModelHost& host,
                  std::function<void(const std::string&)> log,
                  std::function<void(const std::string&)> news = {});

  // Loads what the control mode says should serve at the start, then polls if it says so.
  Status Open();
  void StopPolling() { poller_.Stop(); }

  Status Load(const std::string& model, const std::string& config);
  Status Unload(const std::string& model);
  // A model without a folder; replaces the version that serves under its name.
  Status Serve(ModelSpec spec);
  // Serves `old` without batches from now on, since its calls showed that it has none; says so.
  // Where it no longer serves, nothing happens. Blocking.
  Status StopBatching(const ServedModel& old, const std::string& why);
  // Tries `old`, of which no made-up row ran, with rows as of a call with inputs of these shapes,
  // and serves it in batches if it has them. Blocking.
  void TryAgain(const ServedModel& old, const std::map<std::string, Shape>& shapes);
  // Loads the model of `old`, whose files are others than those that it was loaded from, if it
  // serves still. Where it cannot be loaded the log and the index say so; `old` stays. Blocking.
  void FilesChanged(const ServedModel& old);
  // Waits for loads and unloads under way; those that come later are refused.
  void Close();
  // After Close: takes every model off its lanes.
  void RetireAll();

  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t version) const;
  // The model behind a spec that Find returned, held against retirement by its `outstanding` count,
  // which the caller takes back when the call is answered. Null if it no longer serves.
  std::shared_ptr<ServedModel> Acquire(const ModelSpec* spec) const;
  // The same of the one that serves in its place: its version loaded anew, with the same tensors.
  std::shared_ptr<ServedModel> AcquireInstead(const ModelSpec& gone) const;
  bool Ready() const;
  // As InferenceService's.
  Status ModelReady(std::string_view model, std::int64_t version) const;
  std::vector<ModelState> Index() const;
  Expected<std::vector<ModelStatistics>> Statistics(std::string_view model,
                                                    std::int64_t version) const;

 private:
  enum class State { kReady, kLoading, kUnloading, kUnavailable };
  struct Version {
    State state = State::kUnavailable;
    std::string reason;
    bool wanted = true;  // false: somebody unloaded it
    std::shared_ptr<ServedModel> served;
  };
  struct Entry {
    std::map<std::int64_t, Version> versions;
    FolderStamp stamp;   // of the folder as it was loaded; for polling
    std::string config;  // that replaced the folder's; empty: none did
  };

  // It is loaded, and no lane has it.
  static bool LeftOut(const Version& version) {
    return version.served != nullptr && version.served->on_no_lane();
  }
  // The folders of models that are served here.
  Expected<std::vector<std::string>> Folders() const;
  Status LoadFolder(const std::string& model, const std::string& config);
  Status LoadVersion(const std::filesystem::path& folder, const std::string& model,
                     std::int64_t version, const std::string& config);
  Status Put(const std::string& model, std::int64_t version, Expected<ModelSpec> spec);
  bool Serves(const ServedModel& old) const;
  // In place of `old`, if that serves: `spec`; where its files have changed, what they hold now.
  Status Replace(const ServedModel& old, ModelSpec spec);
  // Once for all that find it the log says why.
  Status LoadChanged(const ServedModel& old);
  void Miss(const std::string& model, const std::string& reason);
  std::string OverrideOf(const std::string& model) const;
  void Remove(const std::string& model, std::int64_t version, const std::string& reason);
  // `old` was found by no one since a moment ago: lets those who found it before hand in their
  // calls, waits for the answers, and takes it off the lanes.
  void Withdraw(const std::shared_ptr<ServedModel>& old);
  void Poll();
  Expected<std::vector<std::int64_t>> VersionsOf(const std::filesystem::path& folder,
                                                 const std::string& config) const;
  // Held while a model is loaded or unloaded. An error after Close.
  // Several at once; what fails is said, and noted in the index.
  void LoadAll(const std::vector<std::string>& models);
  Expected<std::shared_ptr<std::mutex>> OperationLock(const std::string& model);
  void Say(const std::string& line) const;
  // Of models that came, changed or went since Open has ended.
  void Tell(const ModelSpec& spec, const std::string& what) const;

  const RepositoryOptions options_;
  const Duration unload_grace_;
  ModelHost& host_;
  const std::function<void(const std::string&)> log_;
  const std::function<void(const std::string&)> news_;
  std::atomic<bool> opened_{false};

  mutable std::shared_mutex mutex_;  // of the maps; held briefly
  std::map<std::string, Entry, std::less<>> entries_;
  std::unordered_map<const ModelSpec*, std::shared_ptr<ServedModel>> serving_;
  std::map<std::string, std::shared_ptr<std::mutex>> operations_;
  bool closed_ = false;

  RepeatedTask poller_;  // last: it uses the others
};

}  // namespace tactus
