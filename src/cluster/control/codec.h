// The plain messages of src/fleet as bytes on a connection, and back. Whatever comes is read or
// refused; what is read is within bounds.
#pragma once

#include "base/expected.h"
#include "fleet/leader.h"
#include "fleet/messages.h"
#include "fleet/node_state.h"
#include "fleet/worker_routes.h"

namespace tactus {

namespace control {
class Cluster;
class FromNode;
class LeaderFile;
class LinksFile;
class NodeFile;
class RoutesFile;
class ToNode;
}  // namespace control

// Bytes of one message; a larger one ends its connection.
inline constexpr int kMostMessage = 4 << 20;

void Encode(const FromNode& message, control::FromNode& out);
void Encode(const ToNode& message, control::ToNode& out);
void Encode(const LeaderView& view, control::Cluster& out);
void Encode(const NodeKept& kept, control::NodeFile& out);
void Encode(const LeaderKept& kept, control::LeaderFile& out);
void Encode(const WorkerRoutes& routes, control::RoutesFile& out);
void Encode(const std::vector<MeasuredLink>& links, control::LinksFile& out);

// Bytes of a node's slice in a message.
std::size_t BytesOf(const FleetSlice& slice);

// kInvalidArgument says which field makes no sense.
Expected<FromNode> Decode(const control::FromNode& in);
Expected<ToNode> Decode(const control::ToNode& in);
Expected<LeaderView> Decode(const control::Cluster& in);
Expected<NodeKept> Decode(const control::NodeFile& in);
LeaderKept Decode(const control::LeaderFile& in);
Expected<WorkerRoutes> Decode(const control::RoutesFile& in);
Expected<std::vector<MeasuredLink>> Decode(const control::LinksFile& in);

}  // namespace tactus
