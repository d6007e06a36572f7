// The plain types of src/fleet as messages on a connection and in files of state, and back.
// Whatever comes is read or refused; what is read is within bounds.
#pragma once

#include <utility>
#include <vector>

#include "base/expected.h"
#include "fleet/leader.h"
#include "fleet/messages.h"
#include "fleet/node_state.h"
#include "fleet/worker_routes.h"
#include "platform/process.h"

namespace tactus {

// A worker that an agent started, so that a later agent finds it again.
struct KeptWorker {
  ProcessIdentity process;
  std::uint16_t http = 0;
  std::uint16_t grpc = 0;
  std::uint16_t metrics = 0;
  std::uint16_t peer = 0;  // 0: none of its own, it takes other nodes' calls at `grpc`
  std::string models;      // its repository

  bool operator==(const KeptWorker&) const = default;
};

namespace control {
class Cluster;
class FromNode;
class LeaderFile;
class LinksFile;
class NodeFile;
class RoutesFile;
class ToNode;
class WorkerFile;
}  // namespace control

// Bytes of one message; a larger one ends its connection.
inline constexpr int kMostMessage = 4 << 20;

// Which type a message stands for; never defined.
LeaderView MeaningOf(const control::Cluster&);
FromNode MeaningOf(const control::FromNode&);
LeaderKept MeaningOf(const control::LeaderFile&);
std::vector<MeasuredLink> MeaningOf(const control::LinksFile&);
NodeKept MeaningOf(const control::NodeFile&);
WorkerRoutes MeaningOf(const control::RoutesFile&);
ToNode MeaningOf(const control::ToNode&);
KeptWorker MeaningOf(const control::WorkerFile&);
template <class Wire>
using Meaning = decltype(MeaningOf(std::declval<const Wire&>()));

template <class Wire>
void Encode(const Meaning<Wire>& message, Wire& out);
// kInvalidArgument says which field makes no sense.
template <class Wire>
Expected<Meaning<Wire>> Decode(const Wire& in);

// Bytes of a node's slice in a message.
std::size_t BytesOf(const FleetSlice& slice);

}  // namespace tactus
