#include "base/rng.h"

#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/fnv.h"

namespace tactus {

std::uint64_t SplitMix(std::uint64_t& x) {
  std::uint64_t z = (x += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Seeds are spread over the state as the authors of xoshiro advise.
Rng Rng::Stream(std::uint64_t seed, std::string_view name) {
  std::uint64_t x = Fnv1a(name);
  x = SplitMix(x) ^ seed;
  std::array<std::uint64_t, 4> state;
  for (std::uint64_t& word : state) word = SplitMix(x);
  return Rng(state);
}

std::uint64_t Rng::Next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Rng::Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

std::uint64_t Rng::Below(std::uint64_t bound) {
  CHECK(bound > 0, "an empty range has no member");
  // Values under `threshold` would make the low residues likelier than the rest.
  const std::uint64_t threshold = -bound % bound;
  for (;;) {
    const std::uint64_t value = Next();
    if (value >= threshold) return value % bound;
  }
}

double Rng::Exponential(double rate) { return -std::log1p(-Uniform()) / rate; }

double Rng::Normal() {
  // Marsaglia's polar method; the second value is thrown away to keep the stream free of state.
  for (;;) {
    const double u = 2 * Uniform() - 1;
    const double v = 2 * Uniform() - 1;
    const double s = u * u + v * v;
    if (s > 0 && s < 1) return u * std::sqrt(-2 * std::log(s) / s);
  }
}

double Rng::Gamma(double shape, double scale) {
  // Marsaglia and Tsang (2000); a shape under 1 is raised by one and corrected by a power.
  if (shape < 1) {
    const double u = 1 - Uniform();
    return Gamma(shape + 1, scale) * std::pow(u, 1 / shape);
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = Normal();
    const double cube = 1 + c * x;
    if (cube <= 0) continue;
    const double v = cube * cube * cube;
    const double u = 1 - Uniform();
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v * scale;
  }
}

}  // namespace tactus
