// Certificate, key and the clients' authority, read and checked together.
#pragma once

#include <filesystem>
#include <string>

#include "base/expected.h"

namespace tactus {

struct TlsFiles {
  std::filesystem::path certificate;  // PEM: the server's certificate, then those that signed it
  std::filesystem::path key;          // PEM, without a passphrase
  std::filesystem::path client_ca;    // PEM; empty: clients need no certificate
  // A node that comes too late to renew its certificate stays outside until it has, and serves on.
  bool may_have_expired = false;
};

// The files' texts. Whoever holds them keeps one state of the files: never the certificate of one
// and the key of another.
struct TlsMaterial {
  std::string certificate;
  std::string key;
  std::string client_ca;
};

// InvalidArgument with the file and the remedy where one cannot be read, is no PEM, the key is not
// the certificate's, or the certificate has expired and may not have.
Expected<TlsMaterial> ReadTls(const TlsFiles& files);

}  // namespace tactus
