// For tests of this module: UTC that stands still until it is told to go on, a store that does as
// it is told, and a SQLite file.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary_folder_test.h"
#include "knowledge/store.h"

namespace tactus {

// 2026-03-01 12:00.
inline constexpr knowledge::UtcTime kMemoryNoon =
    std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + std::chrono::hours(12);

struct ScriptedStore final : knowledge::StoreWriter {
  struct Script {
    std::mutex mutex;
    std::condition_variable changed;
    bool hangs = false;                      // Commit does not return
    ErrorCode error = ErrorCode::kInternal;  // if `fails`
    bool fails = false;
    int attempts = 0;
    std::vector<knowledge::Batch> written;
  };
  explicit ScriptedStore(Script& given) : script(given) {}

  const std::string& place() const override { return name; }
  Expected<knowledge::Written> Commit(const knowledge::Batch& batch) override {
    std::unique_lock lock(script.mutex);
    ++script.attempts;
    script.changed.notify_all();
    script.changed.wait(lock, [&] { return !script.hangs; });
    if (script.fails) return Fail(script.error, "scripted: not now; wait");
    script.written.push_back(batch);
    script.changed.notify_all();
    return knowledge::Written::kNow;
  }
  Expected<knowledge::Retained> Retain(knowledge::UtcTime, const knowledge::Retention&) override {
    return knowledge::Retained{};
  }

  Script& script;
  const std::string name = "scripted";
};

class SqliteFolder {
 public:
  std::string where() const { return "sqlite:" + (folder_ / "knowledge.db").string(); }
  std::unique_ptr<knowledge::Store> Open() const {
    auto store = knowledge::OpenStore(where());
    if (!store) throw std::runtime_error(store.error().message);
    return *std::move(store);
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace tactus
