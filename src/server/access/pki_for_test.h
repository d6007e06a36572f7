// For tests: certificates and keys, in a folder of the test's own.
#pragma once

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/check.h"

namespace tactus {

inline void WriteText(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Makes `name`.pem and `name`.key in `folder` for 127.0.0.1; signed by itself, so that it is also
// its own authority. It ends in a day, or ended yesterday. Takes the key, where one is given.
inline void MakeCertificate(const std::filesystem::path& folder, const std::string& name,
                            bool expired = false, EVP_PKEY* with_key = nullptr) {
  constexpr long kDay = 24 * 3600;
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      with_key == nullptr ? EVP_EC_gen("P-256") : with_key, EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
  X509* const x = certificate.get();
  X509_set_version(x, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
  X509_gmtime_adj(X509_getm_notBefore(x), -2 * kDay);
  X509_gmtime_adj(X509_getm_notAfter(x), expired ? -kDay : kDay);
  X509_set_pubkey(x, key.get());
  X509_NAME* const subject = X509_get_subject_name(x);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(x, subject);
  for (const auto& [kind, value] : {std::pair(NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost"),
                                    std::pair(NID_basic_constraints, "critical,CA:TRUE")}) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
    CHECK(extension != nullptr, "OpenSSL knows these extensions");
    X509_add_ext(x, extension, -1);
    X509_EXTENSION_free(extension);
  }
  CHECK(X509_sign(x, key.get(), EVP_sha256()) > 0, "a certificate can be signed by its own key");
  const auto write = [&](const char* ending, const auto& put) {
    std::FILE* const file = std::fopen((folder / (name + ending)).c_str(), "w");
    CHECK(file != nullptr && put(file) == 1, "the test's folder can be written");
    std::fclose(file);
  };
  write(".pem", [&](std::FILE* f) { return PEM_write_X509(f, x); });
  write(".key", [&](std::FILE* f) {
    return PEM_write_PrivateKey(f, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

}  // namespace tactus
