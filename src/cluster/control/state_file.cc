#include "cluster/control/state_file.h"

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
constexpr const char* kNode = "node's state";
constexpr const char* kLeader = "controller's state";
constexpr const char* kWorker = "worker's state";
constexpr const char* kRoutes = "worker's routes";
constexpr const char* kLinks = "worker's links";
constexpr const char* kRemedy = "; move it away to start again";
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

template <class Wire>
Expected<Meaning<Wire>> ReadState(const std::filesystem::path& path, const char* what) {
  const auto text = ReadWhole(path, what);
  if (!text) return std::unexpected(text.error());
  return ParseState<Wire>(*text, path.string());
}

}  // namespace

template <class Wire>
Expected<Meaning<Wire>> ParseState(std::string_view text, const std::string& where) {
  Wire file;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  constexpr int kDeepest = 10;
  parser.SetRecursionLimit(kDeepest);
  if (text.size() > kMostBytes || !parser.ParseFromString(std::string(text), &file)) {
    return InvalidArgument(where + ":" + (error.text().empty() ? "1: too long" : error.text()) +
                           kRemedy);
  }
  auto kept = Decode(file);
  if (!kept) return InvalidArgument(where + ": " + kept.error().message + kRemedy);
  return kept;
}

template <class Wire>
std::string StateText(const Meaning<Wire>& kept) {
  Wire file;
  Encode(kept, file);
  std::string text;
  google::protobuf::TextFormat::PrintToString(file, &text);
  return text.empty() ? "# nothing yet\n" : text;
}

template Expected<NodeKept> ParseState<control::NodeFile>(std::string_view, const std::string&);
template Expected<LeaderKept> ParseState<control::LeaderFile>(std::string_view, const std::string&);
template Expected<KeptWorker> ParseState<control::WorkerFile>(std::string_view, const std::string&);
template Expected<WorkerRoutes> ParseState<control::RoutesFile>(std::string_view,
                                                                const std::string&);
template Expected<std::vector<MeasuredLink>> ParseState<control::LinksFile>(std::string_view,
                                                                            const std::string&);
template std::string StateText<control::NodeFile>(const NodeKept&);
template std::string StateText<control::LeaderFile>(const LeaderKept&);
template std::string StateText<control::WorkerFile>(const KeptWorker&);
template std::string StateText<control::RoutesFile>(const WorkerRoutes&);
template std::string StateText<control::LinksFile>(const std::vector<MeasuredLink>&);

Expected<NodeKept> ReadNode(const std::filesystem::path& folder) {
  const auto path = folder / kNodeFile;
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return NodeKept{.who = {UniqueNumber(), 0}};
  return ReadState<control::NodeFile>(path, kNode);
}

Expected<LeaderKept> ReadLeader(const std::filesystem::path& folder) {
  const auto path = folder / kLeaderFile;
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return LeaderKept{};
  return ReadState<control::LeaderFile>(path, kLeader);
}

std::optional<KeptWorker> ReadWorker(const std::filesystem::path& folder) {
  const auto kept = ReadState<control::WorkerFile>(folder / kWorkerFile, kWorker);
  return kept ? std::optional(*kept) : std::nullopt;
}

std::vector<MeasuredLink> ReadLinks(const std::filesystem::path& folder) {
  return ReadState<control::LinksFile>(folder / kLinksFile, kLinks)
      .value_or(std::vector<MeasuredLink>{});
}

std::filesystem::path RoutesIn(const std::filesystem::path& folder) { return folder / kRoutesFile; }

Status Write(const NodeKept& kept, const std::filesystem::path& folder) {
  return WriteWhole(StateText<control::NodeFile>(kept), folder / kNodeFile, kNode);
}
Status Write(const LeaderKept& kept, const std::filesystem::path& folder) {
  return WriteWhole(StateText<control::LeaderFile>(kept), folder / kLeaderFile, kLeader);
}
Status Write(const KeptWorker& kept, const std::filesystem::path& folder) {
  return WriteWhole(StateText<control::WorkerFile>(kept), folder / kWorkerFile, kWorker);
}
Status Write(const WorkerRoutes& routes, const std::filesystem::path& folder) {
  return WriteWhole(StateText<control::RoutesFile>(routes), RoutesIn(folder), kRoutes);
}
Status Write(const std::vector<MeasuredLink>& links, const std::filesystem::path& folder) {
  return WriteWhole(StateText<control::LinksFile>(links), folder / kLinksFile, kLinks);
}

}  // namespace tactus
