// Who the processes of a cluster are to each other: both ends of a connection show a certificate of
// the cluster's authority, which names their node. For processes that live longer than their
// certificate: its files are read again when they change.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "base/expected.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
namespace experimental {
class CertificateProviderInterface;
}
}  // namespace grpc

namespace tactus {

class PeerTls {
 public:
  // In the clear, for processes of one machine or of a network that keeps strangers out.
  PeerTls() = default;
  // authority.pem, node.pem and node.key of a folder, as `tactus cluster` makes them. Empty path:
  // in the clear. kNotFound or kInvalidArgument name the file.
  // They are read again every `read_again`, in whole seconds.
  static Expected<PeerTls> Open(const std::filesystem::path& folder,
                                std::chrono::seconds read_again = std::chrono::seconds(10));

  bool on() const { return files_ != nullptr; }
  // This process's node, by its certificate when it was opened; empty in the clear.
  const std::string& node() const { return node_; }

  // For a port that only nodes of the cluster reach.
  std::shared_ptr<grpc::ServerCredentials> Listening() const;
  // For one that strangers reach too, who have to show a token: whoever serves asks PeerNode
  // (tls.h) for every other call.
  std::shared_ptr<grpc::ServerCredentials> ListeningToStrangers() const;
  // To a process of that node, whatever its address; empty: of any node of the cluster.
  std::shared_ptr<grpc::ChannelCredentials> Towards(const std::string& node) const;

 private:
  std::shared_ptr<grpc::ServerCredentials> Listens(int asks) const;

  std::string node_;
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> files_;
};

// To a process of that node, for one who has authority.pem in the folder and no certificate yet.
// kNotFound or kInvalidArgument name the file.
Expected<std::shared_ptr<grpc::ChannelCredentials>> TowardsAsStranger(
    const std::filesystem::path& folder, const std::string& node);

// The node that a certificate in PEM names; empty: it is none, or names none.
std::string NodeOfCertificate(const std::string& pem);

struct Validity {
  std::chrono::sys_seconds from{};
  std::chrono::sys_seconds until{};
};
// When a certificate (PEM) is valid. kInvalidArgument: it is none.
Expected<Validity> ValidityOf(const std::string& pem);

// Whether the folder has all that the node needs at `now`: a certificate of the authority that is
// there, for that node, with its key. The error says what is wrong, and names the file.
Status CheckCertificate(const std::filesystem::path& folder, const std::string& node,
                        std::chrono::sys_seconds now);

}  // namespace tactus
