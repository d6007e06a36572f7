// Random numbers by named stream. A stream depends on the seed and its own name only, so adding one
// source of randomness moves no other:
//
//   Rng arrivals = Rng::Stream(seed, "arrivals/resnet50");
//   Duration gap = FromSeconds(arrivals.Exponential(rate));
//
// The distributions are ours, because those of the standard library differ between its versions.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tactus {

// SplitMix64's next number; `x` moves on. Spreads whatever it is given over all bits.
std::uint64_t SplitMix(std::uint64_t& x);

class Rng {
 public:
  static Rng Stream(std::uint64_t seed, std::string_view name);

  std::uint64_t Next();                      // uniform over all 64-bit values
  double Uniform();                          // [0, 1)
  std::uint64_t Below(std::uint64_t bound);  // [0, bound), unbiased; bound > 0
  double Exponential(double rate);           // mean 1 / rate; rate > 0
  double Normal();                           // mean 0, variance 1
  double Gamma(double shape, double scale);  // mean shape * scale; shape, scale > 0

 private:
  explicit Rng(std::array<std::uint64_t, 4> state) : state_(state) {}

  std::array<std::uint64_t, 4> state_;  // xoshiro256** (Blackman and Vigna, 2018)
};

}  // namespace tactus
