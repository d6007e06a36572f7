// SHA-256: by which models and their files are known in a cluster.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace tactus {

class Digest {
 public:
  Digest() = default;
  explicit Digest(const std::array<std::uint8_t, 32>& bytes) : bytes_(bytes) {}

  // 64 hexadecimal digits, small letters; nothing else is one.
  static std::optional<Digest> Parse(std::string_view text);
  std::string text() const;
  // For people: "sha256:" and all digits.
  std::string name() const { return "sha256:" + text(); }

  auto operator<=>(const Digest&) const = default;

 private:
  std::array<std::uint8_t, 32> bytes_{};
};

// The digest of bytes that come in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void Add(std::string_view bytes);
  // The digest of all that was added since the last call.
  Digest Take();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Digest DigestOf(std::string_view bytes);

struct FileDigest {
  Digest digest;
  std::uint64_t size = 0;  // bytes
};
// An error names the file.
Expected<FileDigest> DigestOfFile(const std::filesystem::path& path);
// Adds all its bytes; how many there were.
Expected<std::uint64_t> AddFile(const std::filesystem::path& path, Sha256& sum);

}  // namespace tactus
