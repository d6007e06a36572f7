// The hash FNV-1a, 64 bits: the same in every build and on every machine, which std::hash is not.
// It finds accidents, not attacks.
#pragma once

#include <cstdint>
#include <string_view>

namespace tactus {

inline constexpr std::uint64_t kFnvStart = 0xcbf29ce484222325u;

// The hash of `bytes` that follow those whose hash is `hash`.
constexpr std::uint64_t Fnv1a(std::string_view bytes, std::uint64_t hash = kFnvStart) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace tactus
