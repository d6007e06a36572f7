// Values as bytes between two processes of one program on one machine: as the processor has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tactus::isolated {

class ByteWriter {
 public:
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void Put(T value) {
    Append(&value, sizeof value);
  }
  void Put(std::string_view text) { Put(std::as_bytes(std::span(text))); }
  void Put(std::span<const std::byte> bytes) {
    Put(static_cast<std::uint32_t>(bytes.size()));
    Append(bytes.data(), bytes.size());
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void Append(const void* from, std::size_t size) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + size);
    if (size > 0) std::memcpy(bytes_.data() + at, from, size);
  }

  std::vector<std::byte> bytes_;
};

// What runs past the end reads as zeros and nothing, and good() says so.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) T Take() {
    T value{};
    if (rest_.size() < sizeof value) {
      Spoil();
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return value;
  }
  bool TakeBool() { return Take<std::uint8_t>() != 0; }
  std::span<const std::byte> TakeBytes() {
    const auto size = Take<std::uint32_t>();
    if (size > rest_.size()) {
      Spoil();
      return {};
    }
    const auto bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return bytes;
  }
  std::string TakeText() {
    const auto bytes = TakeBytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // How many of something follow, each of at least `least` bytes: never more than can be there.
  std::size_t TakeCount(std::size_t least) {
    const auto count = Take<std::uint32_t>();
    if (count <= rest_.size() / least) return count;
    Spoil();
    return 0;
  }
  void Spoil() {
    good_ = false;
    rest_ = {};
  }
  bool good() const { return good_; }
  // All was read, and nothing is left.
  bool whole() const { return good_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool good_ = true;
};

}  // namespace tactus::isolated
