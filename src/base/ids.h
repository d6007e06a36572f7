// Strongly typed dense indices: a ModelId cannot be passed where a LaneId is meant.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace tactus {

// `Rep` counts up from 0, so that an id is an index into the array of its kind.
template <class Tag, class Rep = std::uint32_t>
class Id {
 public:
  using rep = Rep;

  constexpr Id() = default;
  constexpr explicit Id(Rep value) : value_(value) {}

  constexpr Rep value() const { return value_; }
  constexpr bool valid() const { return value_ != kInvalid; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  static constexpr Rep kInvalid = static_cast<Rep>(-1);
  Rep value_ = kInvalid;
};

using ModelId = Id<struct ModelTag>;
using DeviceId = Id<struct DeviceTag>;
using LaneId = Id<struct LaneTag>;
// The kind of lane a latency was profiled on: one (device kind, fraction) pair.
using LaneClass = Id<struct LaneClassTag>;
// Exits are counted from the shallowest, 0; the deepest is the final one.
using ExitId = Id<struct ExitTag>;
using RequestId = Id<struct RequestTag, std::uint64_t>;
using BatchId = Id<struct BatchTag, std::uint64_t>;

}  // namespace tactus

template <class Tag, class Rep>
struct std::hash<tactus::Id<Tag, Rep>> {
  std::size_t operator()(tactus::Id<Tag, Rep> id) const noexcept {
    return std::hash<Rep>{}(id.value());
  }
};
