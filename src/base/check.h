// CHECK(condition, "why it must hold"): a broken invariant is a bug, and a bug ends the process
// with its place. It stays on in release builds. What a user or a peer can cause is an Error, not a
// CHECK.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace tactus::internal {

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* what,
                                     const char* why) {
  std::fprintf(stderr, "%s:%d: CHECK(%s) failed: %s\n", file, line, what, why);
  std::abort();
}

}  // namespace tactus::internal

// __builtin_FILE() and not __FILE__: what the preprocessor makes is then the same in each checkout,
// and a compiler cache serves them all.
#define CHECK(condition, why)   \
  (static_cast<bool>(condition) \
       ? void(0)                \
       : ::tactus::internal::CheckFailed(__builtin_FILE(), __LINE__, #condition, (why)))
