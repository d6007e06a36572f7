// Values as bytes between two processes of one program on one machine: as the processor has them.
// One function names the fields of a message, for writing and for reading:
//   void Fields(auto& io, Of<decltype(io), Hello> hello) { io(hello.engine, hello.library); }
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace tactus::isolated {

template <class T>
concept Flat = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <class T>
concept Listed = requires(const T& list) {
  list.data();
  list.size();
};

// A message is changed only where it is read.
template <class Io>
constexpr bool kReads = std::remove_reference_t<Io>::kReads;
template <class Io, class T>
using Of = std::conditional_t<kReads<Io>, T&, const T&>;

class ByteWriter {
 public:
  static constexpr bool kReads = false;

  template <class... Ts>
  void operator()(const Ts&... values) {
    (Put(values), ...);
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  template <class T>
  void Put(const T& value) {
    if constexpr (Flat<T>) {
      Append(&value, sizeof value);
    } else if constexpr (Listed<T>) {
      Put(static_cast<std::uint32_t>(value.size()));
      if constexpr (Flat<typename T::value_type>) {
        Append(value.data(), value.size() * sizeof(typename T::value_type));
      } else {
        for (const auto& each : value) Put(each);
      }
    } else {
      Fields(*this, value);
    }
  }
  template <class T>
  void Put(const std::optional<T>& value) {
    Put(value.has_value());
    if (value) Put(*value);
  }
  template <class K, class V>
  void Put(const std::map<K, V>& map) {
    Put(static_cast<std::uint32_t>(map.size()));
    for (const auto& [key, value] : map) (*this)(key, value);
  }
  void Append(const void* from, std::size_t size) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + size);
    if (size > 0) std::memcpy(bytes_.data() + at, from, size);
  }

  std::vector<std::byte> bytes_;
};

// What runs past the end is left as it is, and good() says so. Whatever its count says, a list
// takes no more memory than the bytes that are there account for.
class ByteReader {
 public:
  static constexpr bool kReads = true;

  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class... Ts>
  void operator()(Ts&... values) {
    (Read(values), ...);
  }
  template <class T>
  T Take() {
    T value{};
    Read(value);
    return value;
  }
  void Spoil() {
    good_ = false;
    rest_ = {};
  }
  bool good() const { return good_; }
  // All was read, and nothing is left.
  bool whole() const { return good_ && rest_.empty(); }

 private:
  template <class T>
  void Read(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = Take<std::uint8_t>() != 0;
    } else if constexpr (Flat<T>) {
      Copy(&value, sizeof value);
    } else if constexpr (Listed<T>) {
      const auto count = Take<std::uint32_t>();
      if constexpr (Flat<typename T::value_type>) {
        if (count > rest_.size() / sizeof(typename T::value_type)) return Spoil();
        value.resize(count);
        Copy(value.data(), count * sizeof(typename T::value_type));
      } else {
        for (auto left = count; left > 0 && good_; --left) Read(value.emplace_back());
      }
    } else {
      Fields(*this, value);
    }
  }
  template <class T>
  void Read(std::optional<T>& value) {
    if (Take<bool>()) Read(value.emplace());
  }
  template <class K, class V>
  void Read(std::map<K, V>& map) {
    for (auto left = Take<std::uint32_t>(); left > 0 && good_; --left) {
      K key = Take<K>();
      Read(map[std::move(key)]);
    }
  }
  void Copy(void* to, std::size_t size) {
    if (size > rest_.size()) return Spoil();
    if (size > 0) std::memcpy(to, rest_.data(), size);
    rest_ = rest_.subspan(size);
  }

  std::span<const std::byte> rest_;
  bool good_ = true;
};

}  // namespace tactus::isolated
