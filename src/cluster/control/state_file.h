// What agents and controllers keep in their folders of state: text, written whole or not at all.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "cluster/control/codec.h"

namespace tactus {

// `Wire` is the message that stands in the file. `where` is the file's name in errors,
// kInvalidArgument.
template <class Wire>
Expected<Meaning<Wire>> ParseState(std::string_view text, const std::string& where);
template <class Wire>
std::string StateText(const Meaning<Wire>& kept);

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
