// What agents and controllers keep in their folders of state: text, written whole or not at all.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "fleet/leader.h"
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

// `where` is the file's name in errors, kInvalidArgument.
Expected<NodeKept> ParseNodeFile(std::string_view text, const std::string& where);
Expected<LeaderKept> ParseLeaderFile(std::string_view text, const std::string& where);
Expected<KeptWorker> ParseWorkerFile(std::string_view text, const std::string& where);
Expected<WorkerRoutes> ParseRoutesFile(std::string_view text, const std::string& where);
Expected<std::vector<MeasuredLink>> ParseLinksFile(std::string_view text, const std::string& where);
std::string TextOf(const NodeKept& kept);
std::string TextOf(const LeaderKept& kept);
std::string TextOf(const KeptWorker& kept);
std::string TextOf(const WorkerRoutes& routes);
std::string TextOf(const std::vector<MeasuredLink>& links);

// node.state, controller.state and worker.state of a folder. Where the first is not there, a node
// begins anew: its home is drawn. What cannot be read is an error: it is not begun anew by itself.
Expected<NodeKept> ReadNode(const std::filesystem::path& folder);
Expected<LeaderKept> ReadLeader(const std::filesystem::path& folder);
Status Write(const NodeKept& kept, const std::filesystem::path& folder);
Status Write(const LeaderKept& kept, const std::filesystem::path& folder);
// None: there is no file, or none that makes sense.
std::optional<KeptWorker> ReadWorker(const std::filesystem::path& folder);
Status Write(const KeptWorker& kept, const std::filesystem::path& folder);
// worker.routes, which the worker follows.
std::filesystem::path RoutesIn(const std::filesystem::path& folder);
Status Write(const WorkerRoutes& routes, const std::filesystem::path& folder);

// worker.links, beside the routes: what the worker measures. Where there is none, or none that
// makes sense, nothing is measured.
std::vector<MeasuredLink> ReadLinks(const std::filesystem::path& folder);
Status Write(const std::vector<MeasuredLink>& links, const std::filesystem::path& folder);

}  // namespace tactus
