#include "cluster/tls/authority.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <utility>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/check.h"
#include "base/whole_file.h"
#include "cluster/tls/tls.h"

namespace tactus {
namespace {

struct FreeIt {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_REQ* request) const { X509_REQ_free(request); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <class T>
using Held = std::unique_ptr<T, FreeIt>;

constexpr long kDaySeconds = 24 * 3600;
constexpr long kNodeDays = 30;
constexpr long kAuthorityDays = 3650;
constexpr std::size_t kMostRequest = 16 << 10;

Held<BIO> Reading(const std::string& text) {
  return Held<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

template <class Put>
std::string Pem(Put put) {
  const Held<BIO> bio(BIO_new(BIO_s_mem()));
  CHECK(bio != nullptr && put(bio.get()) == 1, "there is memory for a PEM text");
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}
std::string PemOf(X509* certificate) {
  return Pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}
std::string PemOf(EVP_PKEY* key) {
  return Pem([&](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

Status WriteSecret(const std::string& text, const std::filesystem::path& path) {
  return WriteWhole(text, path, "key", 0600);
}

void AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const made = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  CHECK(made != nullptr, "OpenSSL knows these extensions");
  X509_add_ext(certificate, made, -1);
  X509_EXTENSION_free(made);
}

// Signed by `issuer`, or by itself where that is null.
Held<X509> Signed(EVP_PKEY* key, const std::string& name, const std::string& names, long days,
                  X509* issuer, EVP_PKEY* issuer_key) {
  Held<X509> made(X509_new());
  X509* const x = made.get();
  std::array<unsigned char, 16> serial{};
  CHECK(RAND_bytes(serial.data(), static_cast<int>(serial.size())) == 1, "there is chance");
  serial[0] &= 0x7f;
  BIGNUM* const number = BN_bin2bn(serial.data(), static_cast<int>(serial.size()), nullptr);
  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x));
  BN_free(number);
  X509_set_version(x, X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(x), -kDaySeconds);  // clocks of nodes differ
  X509_gmtime_adj(X509_getm_notAfter(x), days * kDaySeconds);
  X509_set_pubkey(x, key);
  X509_NAME* const subject = X509_get_subject_name(x);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(x, issuer == nullptr ? subject : X509_get_subject_name(issuer));
  const bool authority = issuer == nullptr;
  AddExtension(x, authority ? x : issuer, NID_basic_constraints,
               authority ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE");
  AddExtension(x, authority ? x : issuer, NID_key_usage,
               authority ? "critical,keyCertSign" : "critical,digitalSignature");
  if (!names.empty()) AddExtension(x, issuer, NID_subject_alt_name, names);
  CHECK(X509_sign(x, authority ? key : issuer_key, EVP_sha256()) > 0, "an EC key signs");
  return made;
}

struct Authority {
  std::string pem;
  Held<X509> certificate;
  Held<EVP_PKEY> key;
};

Expected<Authority> ReadAuthority(const std::filesystem::path& folder) {
  constexpr const char* kRemedy = "; tactus cluster init makes it";
  auto pem = ReadWhole(folder / "authority.pem", "authority", kRemedy);
  if (!pem) return std::unexpected(std::move(pem.error()));
  const auto key = ReadWhole(folder / "authority.key", "authority's key", kRemedy);
  if (!key) return std::unexpected(key.error());
  Authority read{*pem, nullptr, nullptr};
  read.certificate.reset(PEM_read_bio_X509(Reading(*pem).get(), nullptr, nullptr, nullptr));
  read.key.reset(PEM_read_bio_PrivateKey(Reading(*key).get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (read.certificate == nullptr || read.key == nullptr) {
    return InvalidArgument(folder.string() + ": authority.pem or authority.key is no PEM");
  }
  return read;
}

Held<X509> SignedNode(EVP_PKEY* key, const std::string& node, const Authority& authority) {
  return Signed(key, node, "URI:" + std::string(kNodeUri) + node, kNodeDays,
                authority.certificate.get(), authority.key.get());
}

// They stand in a certificate's names, where some characters mean something.
bool IsPlain(const std::string& name) {
  constexpr std::size_t kMost = 63;
  return !name.empty() && name.size() <= kMost && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

bool IsAddress(const std::string& host) {
  return host.find(':') != std::string::npos ||
         host.find_first_not_of("0123456789.") == std::string::npos;
}

// Null: it is none, or not signed by its own key.
Held<X509_REQ> RequestOf(const std::string& request) {
  if (request.size() > kMostRequest) return nullptr;
  Held<X509_REQ> asked(PEM_read_bio_X509_REQ(Reading(request).get(), nullptr, nullptr, nullptr));
  EVP_PKEY* const key = asked == nullptr ? nullptr : X509_REQ_get0_pubkey(asked.get());
  const bool owned = key != nullptr && X509_REQ_verify(asked.get(), key) == 1;
  ERR_clear_error();
  return owned ? std::move(asked) : nullptr;
}

std::unexpected<Error> NoRequest() {
  return InvalidArgument("not a certificate request (PEM) signed by its own key");
}

// What an i2d function writes of it.
template <class T, class Write>
std::string DerOf(T* what, Write write) {
  unsigned char* bytes = nullptr;
  const int size = write(what, &bytes);
  CHECK(size > 0, "what was read can be written");
  std::string der(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return der;
}

KeyRequest RequestBy(EVP_PKEY* key) {
  const Held<X509_REQ> request(X509_REQ_new());
  X509_REQ_set_pubkey(request.get(), key);
  CHECK(X509_REQ_sign(request.get(), key, EVP_sha256()) > 0, "an EC key signs");
  return {PemOf(key), Pem([&](BIO* bio) { return PEM_write_bio_X509_REQ(bio, request.get()); })};
}

}  // namespace

Status MakeAuthority(const std::filesystem::path& folder, const std::vector<std::string>& hosts) {
  std::error_code code;
  if (std::filesystem::exists(folder / "authority.key", code)) {
    return Fail(
        ErrorCode::kAlreadyExists,
        folder.string() + ": already contains a certificate authority; choose an empty folder");
  }
  std::string names = "URI:" + std::string(kNodeUri) + kControllerNode;
  for (const std::string& host : hosts) {
    if (!IsAddress(host) && !IsPlain(host)) {
      return InvalidArgument("'" + host + "' is no name and no address of a host");
    }
    names += (IsAddress(host) ? ",IP:" : ",DNS:") + host;
  }
  std::filesystem::create_directories(folder, code);
  const Held<EVP_PKEY> key(EVP_EC_gen("P-256"));
  const Held<EVP_PKEY> node_key(EVP_EC_gen("P-256"));
  const auto authority = Signed(key.get(), "tactus cluster", "", kAuthorityDays, nullptr, nullptr);
  const auto node =
      Signed(node_key.get(), kControllerNode, names, kAuthorityDays, authority.get(), key.get());
  if (Status s = WriteSecret(PemOf(node_key.get()), folder / "node.key"); !s) return s;
  if (Status s = WriteWhole(PemOf(node.get()), folder / "node.pem", "certificate"); !s) return s;
  if (Status s = WriteWhole(PemOf(authority.get()), folder / "authority.pem", "authority"); !s) {
    return s;
  }
  return WriteSecret(PemOf(key.get()), folder / "authority.key");  // last: all is there
}

Status CheckNodeName(const std::string& node) {
  if (node == kControllerNode) {
    return InvalidArgument("'" + node +
                           "': that is what all controllers are called; a node needs "
                           "another name");
  }
  if (IsPlain(node)) return {};
  return InvalidArgument("'" + node + "': a node's name is made of letters, digits, - _ and .");
}

Expected<std::string> SignNode(const std::filesystem::path& folder, const std::string& node,
                               const std::string& request) {
  if (Status named = CheckNodeName(node); !named) return std::unexpected(std::move(named.error()));
  const Held<X509_REQ> asked = RequestOf(request);
  if (asked == nullptr) return NoRequest();
  auto authority = ReadAuthority(folder);
  if (!authority) return std::unexpected(std::move(authority.error()));
  return PemOf(SignedNode(X509_REQ_get0_pubkey(asked.get()), node, *authority).get());
}

Expected<std::string> SumOfKey(const std::string& request) {
  const Held<X509_REQ> asked = RequestOf(request);
  if (asked == nullptr) return NoRequest();
  const std::string der = DerOf(X509_REQ_get0_pubkey(asked.get()), i2d_PUBKEY);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> sum{};
  SHA256(reinterpret_cast<const unsigned char*>(der.data()), der.size(), sum.data());
  return HexOf(sum.data(), sum.size());
}

Expected<std::string> AuthoritySecret(const std::filesystem::path& folder) {
  const auto authority = ReadAuthority(folder);
  if (!authority) return std::unexpected(authority.error());
  return DerOf(authority->key.get(), i2d_PrivateKey);
}

KeyRequest MakeKeyRequest() {
  const Held<EVP_PKEY> key(EVP_EC_gen("P-256"));
  return RequestBy(key.get());
}

Expected<KeyRequest> MakeKeyRequest(const std::string& key) {
  const Held<EVP_PKEY> read(PEM_read_bio_PrivateKey(Reading(key).get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (read == nullptr || EVP_PKEY_get_base_id(read.get()) != EVP_PKEY_EC) {
    return InvalidArgument("no EC private key in PEM");
  }
  return RequestBy(read.get());
}

Status KeepNode(const std::filesystem::path& folder, const std::string& key,
                const std::string& certificate) {
  if (Status s = WriteSecret(key, folder / "node.key"); !s) return s;
  return WriteWhole(certificate, folder / "node.pem", "certificate");
}

Status MakeNode(const std::filesystem::path& folder, const std::string& node,
                const std::filesystem::path& out) {
  if (Status named = CheckNodeName(node); !named) return named;
  auto authority = ReadAuthority(folder);
  if (!authority) return std::unexpected(std::move(authority.error()));
  std::error_code code;
  if (std::filesystem::exists(out / "authority.key", code)) {
    return InvalidArgument(out.string() + " has the authority's key: another --out, please");
  }
  const Held<EVP_PKEY> key(EVP_EC_gen("P-256"));
  const auto made = SignedNode(key.get(), node, *authority);
  std::filesystem::create_directories(out, code);
  if (Status s = WriteWhole(authority->pem, out / "authority.pem", "authority"); !s) return s;
  return KeepNode(out, PemOf(key.get()), PemOf(made.get()));
}

std::string HexOf(const unsigned char* bytes, std::size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += {kDigits[bytes[i] >> 4], kDigits[bytes[i] & 15]};
  return text;
}

}  // namespace tactus
