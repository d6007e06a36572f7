#include "engines/engine_shelf.h"

#include <algorithm>
#include <utility>

namespace tactus {

EngineShelf::EngineShelf(std::string forced, EngineOptions options)
    : forced_(std::move(forced)), options_(std::move(options)) {}

Expected<Engine*> EngineShelf::For(std::string_view platform) {
  const std::string_view name = forced_.empty() ? platform : forced_;
  const std::scoped_lock lock(mutex_);
  if (const auto it = made_.find(name); it != made_.end()) return it->second.get();
  auto engine = MakeEngine(name, options_);
  if (!engine) return std::unexpected(std::move(engine.error()));
  return made_.emplace(name, *std::move(engine)).first->second.get();
}

std::string EngineShelf::names() const {
  const std::scoped_lock lock(mutex_);
  std::string all;
  for (const auto& [name, engine] : made_) {
    all += (all.empty() ? "" : ", ") + engine->traits().name;
  }
  return all;
}

std::vector<EngineProcessReading> EngineShelf::processes() const {
  const std::scoped_lock lock(mutex_);
  std::vector<EngineProcessReading> all;
  for (const auto& [name, engine] : made_) {
    for (EngineProcessReading& each : ProcessesOf(*engine)) all.push_back(std::move(each));
  }
  return all;
}

std::vector<ArenaUse> EngineShelf::arenas() const {
  const std::scoped_lock lock(mutex_);
  std::vector<ArenaUse> all;
  for (const auto& [name, engine] : made_) {
    for (ArenaUse& each : engine->Arenas()) all.push_back(std::move(each));
  }
  return all;
}

bool EngineShelf::GiveBackAtRest() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;  // one is being made, which may take long
  bool any = false;
  for (const auto& [name, engine] : made_) any |= engine->GiveBackAtRest();
  return any;
}

bool EngineShelf::emulated() const {
  const std::scoped_lock lock(mutex_);
  return std::any_of(made_.begin(), made_.end(),
                     [](const auto& made) { return made.second->traits().emulated; });
}

}  // namespace tactus
