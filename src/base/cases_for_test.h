// How many random cases a test does that runs in two builds (*_claims_test.cc).
#pragma once

namespace tactus {

// Clang says by a feature what g++ says by a macro.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TACTUS_CASES_UNDER_SANITIZERS 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TACTUS_CASES_UNDER_SANITIZERS 1
#endif

// All of them in the release; the first fifth under sanitizers, which take ten times as long.
constexpr int CasesHere(int all) {
#ifdef TACTUS_CASES_UNDER_SANITIZERS
  return all / 5;
#else
  return all;
#endif
}

}  // namespace tactus
