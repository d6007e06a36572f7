// Any bytes as the events of a dispatcher's life (dispatcher_life.h) and as its policy: nothing
// that the account says must be true may fail.
#include <cstddef>
#include <cstdint>
#include <span>

#include <gtest/gtest.h>

#include "dispatcher_life.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  ::testing::InitGoogleTest(argc, *argv);
  GTEST_FLAG_SET(break_on_failure, true);  // an expectation that fails is a finding
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tactus::BytesChance chance(std::span(data, size));
  const std::string policy =
      chance.OneIn(8) ? tactus::kRandomPolicy : tactus::RandomPolicyText(chance);
  tactus::Life(chance, policy).Run(1000);
  return 0;
}
