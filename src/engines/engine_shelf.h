// The engines of a process, each made when the first model needs it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engines/registry.h"

namespace tactus {

class EngineShelf {
 public:
  // With `forced` every model runs on the engine of that name; empty: on that of its platform.
  EngineShelf(std::string forced, EngineOptions options);

  // Thread-safe; the engine lives as long as the shelf. The error of MakeEngine.
  Expected<Engine*> For(std::string_view platform);

  // The names of the engines made so far, with commas between them; whether one is emulated.
  std::string names() const;
  bool emulated() const;
  // The arenas of all of them in this process.
  std::vector<ArenaUse> arenas() const;
  // Engine::GiveBackAtRest of all of them.
  bool GiveBackAtRest();
  // The processes that run engines of the shelf.
  std::vector<EngineProcessReading> processes() const;

 private:
  const std::string forced_;
  const EngineOptions options_;
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Engine>, std::less<>> made_;
};

}  // namespace tactus
