// FP16 and BF16 as numbers. For samples and comparisons: what is beyond FP16's normal range becomes
// zero or infinity.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace tactus {

inline std::uint16_t HalfOf(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const int exponent = static_cast<int>(bits >> 23 & 0xff) - 127 + 15;
  if (exponent <= 0) return sign;
  if (exponent >= 31) return sign | 0x7c00;
  return static_cast<std::uint16_t>(sign | exponent << 10 | (bits >> 13 & 0x3ff));
}

inline double FromHalf(std::uint16_t half) {
  const double sign = (half & 0x8000) != 0 ? -1 : 1;
  const int exponent = half >> 10 & 0x1f;
  const int fraction = half & 0x3ff;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

inline std::uint16_t BrainHalfOf(double value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16);
}

inline double FromBrainHalf(std::uint16_t half) {
  return std::bit_cast<float>(std::uint32_t{half} << 16);
}

}  // namespace tactus
