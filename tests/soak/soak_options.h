// How long a soak runs and from which seed: set by the command line (main.cc).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tactus {

// The seeds of one test: first, first + 1, ... as many as `lives`, or while there is time.
struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t lives = 0;
  std::chrono::steady_clock::time_point until{};

  // Whether to go on after `done` lives. A test that went through all of them leaves their number
  // as its property "lives" (main.cc prints the sum).
  bool More(std::uint64_t done) const;
};

// `lives` unless the command line says otherwise. With --seconds a test begins its share of them.
Seeds SeedsOf(std::uint64_t lives);

// So many requests in all; `requests` unless the command line says otherwise.
std::uint64_t RequestsOf(std::uint64_t requests);

// "seed S, commit C; again: ...": what a failure must say.
std::string Again(std::uint64_t seed);

}  // namespace tactus
