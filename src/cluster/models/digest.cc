#include "cluster/models/digest.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include <openssl/evp.h>

#include "base/check.h"

namespace tactus {
namespace {

constexpr char kHex[] = "0123456789abcdef";
constexpr std::size_t kReadBytes = 256 << 10;

}  // namespace

std::optional<Digest> Digest::Parse(std::string_view text) {
  std::array<std::uint8_t, 32> bytes{};
  if (text.size() != 2 * bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t value = std::string_view(kHex).find(text[i]);
    if (value == std::string_view::npos) return std::nullopt;
    bytes[i / 2] = static_cast<std::uint8_t>(bytes[i / 2] << 4 | value);
  }
  return Digest(bytes);
}

std::string Digest::text() const {
  std::string text;
  for (const std::uint8_t byte : bytes_) {
    text += kHex[byte >> 4];
    text += kHex[byte & 0xf];
  }
  return text;
}

struct Sha256::Context {
  EVP_MD_CTX* sum = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(sum); }
  void Begin() const {
    CHECK(sum != nullptr && EVP_DigestInit_ex(sum, EVP_sha256(), nullptr) == 1,
          "OpenSSL has SHA-256");
  }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) { context_->Begin(); }
Sha256::~Sha256() = default;

void Sha256::Add(std::string_view bytes) {
  CHECK(EVP_DigestUpdate(context_->sum, bytes.data(), bytes.size()) == 1, "it takes any bytes");
}

Digest Sha256::Take() {
  std::array<std::uint8_t, 32> bytes{};
  unsigned size = 0;
  CHECK(EVP_DigestFinal_ex(context_->sum, bytes.data(), &size) == 1 && size == bytes.size(),
        "it ends once");
  context_->Begin();
  return Digest(bytes);
}

Digest DigestOf(std::string_view bytes) {
  Sha256 sum;
  sum.Add(bytes);
  return sum.Take();
}

Expected<std::uint64_t> AddFile(const std::filesystem::path& path, Sha256& sum) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotFound(path.string() + ": cannot read this file: " + std::strerror(errno));
  std::vector<char> buffer(kReadBytes);
  std::uint64_t size = 0;
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const auto got = static_cast<std::size_t>(file.gcount());
    sum.Add({buffer.data(), got});
    size += got;
  }
  if (file.bad()) return Internal(path.string() + ": cannot read this file to its end");
  return size;
}

Expected<FileDigest> DigestOfFile(const std::filesystem::path& path) {
  Sha256 sum;
  const auto size = AddFile(path, sum);
  if (!size) return std::unexpected(size.error());
  return FileDigest{sum.Take(), *size};
}

}  // namespace tactus
