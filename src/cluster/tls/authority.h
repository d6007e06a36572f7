// The cluster's own authority: it signs the certificate of a node that shows a one-time token
// (token.h).
//
//   authority.pem, authority.key   of `tactus cluster init`; the key stays with the controllers
//   node.pem, node.key             this node's certificate, which names it, and its key
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "base/expected.h"

namespace tactus {

// Makes the folder with all files; the controller's certificate is for `hosts`, names or addresses.
// kAlreadyExists where there is an authority: its nodes would be locked out.
Status MakeAuthority(const std::filesystem::path& folder, const std::vector<std::string>& hosts);

// kInvalidArgument: it cannot stand in a certificate, or is the controllers' own.
Status CheckNodeName(const std::string& node);

// Signs for a node that somebody has made sure of: its certificate in PEM, for 30 days. Nothing of
// the request counts but its key.
Expected<std::string> SignNode(const std::filesystem::path& folder, const std::string& node,
                               const std::string& request);
// The sum of the request's public key, in hex. kInvalidArgument: it is no request in PEM that is
// signed by its own key.
Expected<std::string> SumOfKey(const std::string& request);
// What other secrets of the authority are derived from.
Expected<std::string> AuthoritySecret(const std::filesystem::path& folder);

// What a node makes to be admitted: the key never leaves its machine.
struct KeyRequest {
  std::string key;      // PEM
  std::string request;  // PEM, signed by the key
};
KeyRequest MakeKeyRequest();
// By a key that is there. kInvalidArgument: it is none on an elliptic curve, in PEM.
Expected<KeyRequest> MakeKeyRequest(const std::string& key);
// Writes node.key, for this user only, and node.pem.
Status KeepNode(const std::filesystem::path& folder, const std::string& key,
                const std::string& certificate);

// All that a node needs, made where the authority's key is: authority.pem, node.pem and node.key in
// the folder `out`, to be carried to the node.
Status MakeNode(const std::filesystem::path& folder, const std::string& node,
                const std::filesystem::path& out);

std::string HexOf(const unsigned char* bytes, std::size_t count);

}  // namespace tactus
