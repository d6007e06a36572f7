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
  // Of this process, by its certificate when it was opened; empty in the clear.
  const std::string& node() const { return node_; }

  // For a port that only nodes of the cluster reach.
  std::shared_ptr<grpc::ServerCredentials> Listening() const;
  // To a process of that node, whatever its address; empty: of any node of the cluster.
  std::shared_ptr<grpc::ChannelCredentials> Towards(const std::string& node) const;

 private:
  std::string node_;
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> files_;
};

// The node that a certificate in PEM names; empty: it is none, or names none.
std::string NodeOfCertificate(const std::string& pem);

}  // namespace tactus
