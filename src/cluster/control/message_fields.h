// Plain types as protobuf messages, and back. One function names a type's fields in the order in
// which its message declares them, for writing and for reading:
//   void Fields(auto& io, Of<decltype(io), PlanId> id) { io(id.term, id.epoch); }
// What is read is checked by its type: names are short and without NUL, times, numbers and indices
// are not negative and within bounds. Any() leaves out these checks.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <google/protobuf/message.h>

#include "base/expected.h"
#include "base/serving_time.h"

namespace tactus {

// A message is changed only where it is read.
template <class Io>
constexpr bool kReads = std::remove_reference_t<Io>::kReads;
template <class Io, class T>
using Of = std::conditional_t<kReads<Io>, T&, const T&>;

template <class T>
struct Any {
  explicit Any(T& of) : value(of) {}
  T& value;
};

template <class T>
concept Small = std::is_same_v<T, int> || std::is_same_v<T, std::uint16_t> || std::is_enum_v<T>;

class FieldWriter {
 public:
  static constexpr bool kReads = false;

  explicit FieldWriter(google::protobuf::Message& out) : out_(out) {}

  template <class... Ts>
  void operator()(const Ts&... values) {
    (Put(out_.GetDescriptor()->field(next_++), values), ...);
  }
  // The alternatives are fields one after the other.
  template <class... Ts>
  void OneOf(const std::variant<Ts...>& value) {
    const Field field = out_.GetDescriptor()->field(next_ + static_cast<int>(value.index()));
    std::visit([&](const auto& each) { Put(field, each); }, value);
  }
  void Check(bool, const char*) {}

 private:
  using Field = const google::protobuf::FieldDescriptor*;

  const google::protobuf::Reflection& to() const { return *out_.GetReflection(); }

  void Put(Field field, const bool& value) { to().SetBool(&out_, field, value); }
  void Put(Field field, const double& value) { to().SetDouble(&out_, field, value); }
  void Put(Field field, const std::uint64_t& value) { to().SetUInt64(&out_, field, value); }
  void Put(Field field, const Duration& value) { to().SetInt64(&out_, field, value.count()); }
  void Put(Field field, const std::string& value) { to().SetString(&out_, field, value); }
  template <Small T>
  void Put(Field field, const T& value) {
    if (field->cpp_type() == field->CPPTYPE_INT32) {
      to().SetInt32(&out_, field, static_cast<std::int32_t>(value));
    } else {
      to().SetUInt32(&out_, field, static_cast<std::uint32_t>(value));
    }
  }
  template <class T>
  void Put(Field field, const Any<T>& any) {
    Put(field, any.value);
  }
  void Put(Field field, const std::vector<std::string>& list) {
    for (const auto& each : list) to().AddString(&out_, field, each);
  }
  template <class T>
  void Put(Field field, const std::vector<T>& list) {
    for (const T& each : list) PutAll(*to().AddMessage(&out_, field), each);
  }
  template <class T>
  void Put(Field field, const T& value) {
    PutAll(*to().MutableMessage(&out_, field), value);
  }
  template <class T>
  void PutAll(google::protobuf::Message& out, const T& value) {
    FieldWriter nested(out);
    Fields(nested, value);
  }

  google::protobuf::Message& out_;
  int next_ = 0;
};

// Keeps the first thing that is wrong: "Link.rtt_ns".
class FieldReader {
 public:
  static constexpr bool kReads = true;

  FieldReader(const google::protobuf::Message& in, std::string& wrong) : in_(in), wrong_(wrong) {}

  template <class... Ts>
  void operator()(Ts&&... values) {
    (Take(in_.GetDescriptor()->field(next_++), values), ...);
  }
  template <class... Ts>
  void OneOf(std::variant<Ts...>& value) {
    const auto* kind = in_.GetDescriptor()->field(next_)->containing_oneof();
    Check(from().HasOneof(in_, kind), kind->name());
    (TakeIfThere<Ts>(in_.GetDescriptor()->field(next_++), value), ...);
  }
  void Check(bool sound, const std::string& name) {
    if (!sound && wrong_.empty()) wrong_ = in_.GetDescriptor()->name() + "." + name;
  }

 private:
  using Field = const google::protobuf::FieldDescriptor*;
  static constexpr std::int64_t kMost = std::int64_t{1} << 53;  // nanoseconds
  static constexpr std::uint32_t kMostIndex = 1 << 20;
  static constexpr std::size_t kMostName = 256;
  static constexpr int kMostItems = 100'000;  // of any list

  const google::protobuf::Reflection& from() const { return *in_.GetReflection(); }

  void Take(Field field, bool& value) { value = from().GetBool(in_, field); }
  void Take(Field field, std::uint64_t& value) { value = from().GetUInt64(in_, field); }
  void Take(Field field, double& value) {
    value = from().GetDouble(in_, field);
    Check(value >= 0 && value <= 1e12, field->name());
  }
  void Take(Field field, Duration& value) {
    value = Nanos(from().GetInt64(in_, field));
    Check(value >= Duration{} && value <= Nanos(kMost), field->name());
  }
  void Take(Field field, std::string& value) {
    value = from().GetString(in_, field);
    Check(value.size() <= kMostName && value.find('\0') == std::string::npos, field->name());
  }
  template <Small T>
  void Take(Field field, T& value) {
    if (field->cpp_type() == field->CPPTYPE_INT32) {
      value = static_cast<T>(from().GetInt32(in_, field));
    } else {
      const std::uint32_t read = from().GetUInt32(in_, field);
      value = static_cast<T>(read);
      Check(read <= kMostIndex && static_cast<std::uint32_t>(value) == read, field->name());
    }
  }
  template <class T>
  void Take(Field field, Any<T>& any) {
    std::string unread;
    FieldReader(in_, unread).Take(field, any.value);
  }
  template <class T>
  void Take(Field field, std::vector<T>& list) {
    const int size = from().FieldSize(in_, field);
    if (size > kMostItems) return Check(false, field->name());
    for (int i = 0; i < size; ++i) {
      if constexpr (std::is_same_v<T, std::string>) {
        const std::string& name = list.emplace_back(from().GetRepeatedString(in_, field, i));
        Check(name.size() <= kMostName && name.find('\0') == name.npos, field->name());
      } else {
        TakeAll(from().GetRepeatedMessage(in_, field, i), list.emplace_back());
      }
    }
  }
  template <class T>
  void Take(Field field, T& value) {
    TakeAll(from().GetMessage(in_, field), value);
  }
  template <class T>
  void TakeAll(const google::protobuf::Message& in, T& value) {
    FieldReader nested(in, wrong_);
    Fields(nested, value);
  }
  template <class T, class Variant>
  void TakeIfThere(Field field, Variant& value) {
    if (from().HasField(in_, field)) Take(field, value.template emplace<T>());
  }

  const google::protobuf::Message& in_;
  std::string& wrong_;
  int next_ = 0;
};

}  // namespace tactus
