// The cluster's own authority: it signs the certificate of a node that shows a one-time token.
//
//   authority.pem, authority.key   of `tactus cluster init`; the key stays with the controller
//   node.pem, node.key             this node's certificate, which names it, and its key
//   tokens                         sums of those that are not used yet: SUM NODE EXPIRY on each
//   line
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/expected.h"

namespace tactus {

// Makes the folder with all files; the controller's certificate is for `hosts`, names or addresses.
// kAlreadyExists where there is an authority: its nodes would be locked out.
Status MakeAuthority(const std::filesystem::path& folder, const std::vector<std::string>& hosts);

// Admits `node` once, within `valid`. Only its sum is kept.
Expected<std::string> MakeToken(const std::filesystem::path& folder, const std::string& node,
                                std::chrono::seconds valid);

struct Admitted {
  std::string node;
  std::string certificate;  // PEM, for 30 days
  std::string authority;
};
// Uses the token up. kInvalidArgument says what is wrong with it or with the request, never the
// token.
Expected<Admitted> AdmitNode(const std::filesystem::path& folder, const std::string& token,
                             const std::string& request);

// What a node makes to be admitted: the key never leaves its machine.
struct KeyRequest {
  std::string key;      // PEM
  std::string request;  // PEM, signed by the key
};
KeyRequest MakeKeyRequest();
// Writes node.key, for this user only, and node.pem.
Status KeepNode(const std::filesystem::path& folder, const std::string& key,
                const std::string& certificate);

// All that a node needs, made where the authority's key is: authority.pem, node.pem and node.key in
// the folder `out`, to be carried to the node.
Status MakeNode(const std::filesystem::path& folder, const std::string& node,
                const std::filesystem::path& out);

}  // namespace tactus
