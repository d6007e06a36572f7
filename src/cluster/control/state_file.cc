#include "cluster/control/state_file.h"

#include <limits>
#include <utility>

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "base/whole_file.h"
#include "cluster/control/codec.h"
#include "control.pb.h"

namespace tactus {
namespace {

constexpr const char* kNodeFile = "node.state";
constexpr const char* kLeaderFile = "controller.state";
constexpr const char* kWorkerFile = "worker.state";
constexpr const char* kRoutesFile = "worker.routes";
constexpr const char* kLinksFile = "worker.links";
constexpr std::size_t kMostBytes = 8 << 20;

// Keeps the first error; the library would print them all.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber, const std::string& message) override {
    if (text_.empty()) text_ = std::to_string(line + 1) + ": " + message;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

template <class Message>
Expected<Message> Parsed(std::string_view text, const std::string& where) {
  Message message;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  constexpr int kDeepest = 10;
  parser.SetRecursionLimit(kDeepest);
  if (text.size() <= kMostBytes && parser.ParseFromString(std::string(text), &message)) {
    return message;
  }
  return InvalidArgument(where + ":" + (error.text().empty() ? "1: too long" : error.text()) +
                         "; move it away to start again");
}

template <class Message>
std::string Printed(const Message& message) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return text.empty() ? "# nothing yet\n" : text;
}

}  // namespace

Expected<NodeKept> ParseNodeFile(std::string_view text, const std::string& where) {
  const auto file = Parsed<control::NodeFile>(text, where);
  if (!file) return std::unexpected(file.error());
  auto kept = Decode(*file);
  if (!kept) return InvalidArgument(where + ": " + kept.error().message);
  if (kept->who.home == 0) return InvalidArgument(where + ": no home; move it away to start again");
  return kept;
}

Expected<LeaderKept> ParseLeaderFile(std::string_view text, const std::string& where) {
  const auto file = Parsed<control::LeaderFile>(text, where);
  if (!file) return std::unexpected(file.error());
  return Decode(*file);
}

Expected<KeptWorker> ParseWorkerFile(std::string_view text, const std::string& where) {
  const auto file = Parsed<control::WorkerFile>(text, where);
  if (!file) return std::unexpected(file.error());
  constexpr std::uint32_t kMostPort = std::numeric_limits<std::uint16_t>::max();
  if (file->pid() < 2 || file->http() > kMostPort || file->grpc() > kMostPort ||
      file->metrics() > kMostPort || file->peer() > kMostPort) {
    return InvalidArgument(where + ": no process or no port");
  }
  return KeptWorker{
      {file->pid(), file->started()},           static_cast<std::uint16_t>(file->http()),
      static_cast<std::uint16_t>(file->grpc()), static_cast<std::uint16_t>(file->metrics()),
      static_cast<std::uint16_t>(file->peer()), file->models()};
}

Expected<WorkerRoutes> ParseRoutesFile(std::string_view text, const std::string& where) {
  const auto file = Parsed<control::RoutesFile>(text, where);
  if (!file) return std::unexpected(file.error());
  auto routes = Decode(*file);
  if (!routes) return InvalidArgument(where + ": " + routes.error().message);
  return routes;
}

Expected<std::vector<MeasuredLink>> ParseLinksFile(std::string_view text,
                                                   const std::string& where) {
  const auto file = Parsed<control::LinksFile>(text, where);
  if (!file) return std::unexpected(file.error());
  auto links = Decode(*file);
  if (!links) return InvalidArgument(where + ": " + links.error().message);
  return links;
}

std::string TextOf(const NodeKept& kept) {
  control::NodeFile file;
  Encode(kept, file);
  return Printed(file);
}

std::string TextOf(const LeaderKept& kept) {
  control::LeaderFile file;
  Encode(kept, file);
  return Printed(file);
}

std::string TextOf(const KeptWorker& kept) {
  control::WorkerFile file;
  file.set_pid(kept.process.pid);
  file.set_started(kept.process.started);
  file.set_http(kept.http);
  file.set_grpc(kept.grpc);
  file.set_metrics(kept.metrics);
  file.set_peer(kept.peer);
  file.set_models(kept.models);
  return Printed(file);
}

std::string TextOf(const WorkerRoutes& routes) {
  control::RoutesFile file;
  Encode(routes, file);
  return Printed(file);
}

Expected<NodeKept> ReadNode(const std::filesystem::path& folder) {
  const auto path = folder / kNodeFile;
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return NodeKept{.who = {UniqueNumber(), 0}};
  const auto text = ReadWhole(path, "node's state");
  if (!text) return std::unexpected(text.error());
  return ParseNodeFile(*text, path.string());
}

Expected<LeaderKept> ReadLeader(const std::filesystem::path& folder) {
  const auto path = folder / kLeaderFile;
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return LeaderKept{};
  const auto text = ReadWhole(path, "controller's state");
  if (!text) return std::unexpected(text.error());
  return ParseLeaderFile(*text, path.string());
}

std::optional<KeptWorker> ReadWorker(const std::filesystem::path& folder) {
  const auto text = ReadWhole(folder / kWorkerFile, "worker's state");
  if (!text) return std::nullopt;
  auto kept = ParseWorkerFile(*text, kWorkerFile);
  return kept ? std::optional(*kept) : std::nullopt;
}

Status Write(const NodeKept& kept, const std::filesystem::path& folder) {
  return WriteWhole(TextOf(kept), folder / kNodeFile, "node's state");
}
Status Write(const LeaderKept& kept, const std::filesystem::path& folder) {
  return WriteWhole(TextOf(kept), folder / kLeaderFile, "controller's state");
}
Status Write(const KeptWorker& kept, const std::filesystem::path& folder) {
  return WriteWhole(TextOf(kept), folder / kWorkerFile, "worker's state");
}
std::filesystem::path RoutesIn(const std::filesystem::path& folder) { return folder / kRoutesFile; }
Status Write(const WorkerRoutes& routes, const std::filesystem::path& folder) {
  return WriteWhole(TextOf(routes), RoutesIn(folder), "worker's routes");
}

std::string TextOf(const std::vector<MeasuredLink>& links) {
  control::LinksFile file;
  Encode(links, file);
  return Printed(file);
}

std::vector<MeasuredLink> ReadLinks(const std::filesystem::path& folder) {
  const auto text = ReadWhole(folder / kLinksFile, "worker's links");
  if (!text) return {};
  return ParseLinksFile(*text, kLinksFile).value_or(std::vector<MeasuredLink>{});
}

Status Write(const std::vector<MeasuredLink>& links, const std::filesystem::path& folder) {
  return WriteWhole(TextOf(links), folder / kLinksFile, "worker's links");
}

}  // namespace tactus
