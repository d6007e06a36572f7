// Bytes that go out in one write: small ones copied together, large ones from where they lie.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tactus {

class H2Output {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  void Copy(const void* bytes, std::size_t n) {
    if (parts_.empty() || parts_.back().owner != nullptr) parts_.emplace_back();
    copied_.append(static_cast<const char*>(bytes), n);
    parts_.back().copied += n;
    size_ += n;
  }
  void Add(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner) {
    if (bytes.size() < kCopyBelow || owner == nullptr) return Copy(bytes.data(), bytes.size());
    parts_.push_back({0, bytes, owner});
    size_ += bytes.size();
  }
  // Calls `take` with each span, in order.
  template <class Take>
  void ForEach(Take&& take) const {
    std::size_t at = 0;
    for (const Part& part : parts_) {
      if (part.owner != nullptr) {
        take(part.shared);
      } else {
        take(std::as_bytes(std::span(copied_).subspan(at, part.copied)));
        at += part.copied;
      }
    }
  }
  void Clear() {
    copied_.clear();
    parts_.clear();
    size_ = 0;
  }

 private:
  // Below this a copy costs less than an entry of its own.
  static constexpr std::size_t kCopyBelow = 4096;
  struct Part {
    std::size_t copied = 0;  // bytes of copied_, or else
    std::span<const std::byte> shared;
    std::shared_ptr<const void> owner;
  };

  std::string copied_;
  std::vector<Part> parts_;
  std::size_t size_ = 0;
};

}  // namespace tactus
