#include "service/model_folders.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/why_not_written.h"

namespace tactus {

namespace fs = std::filesystem;

// A folder of one model's files, removed with it.
class SentFolder {
 public:
  explicit SentFolder(fs::path parent) : parent_(std::move(parent)) {}
  ~SentFolder() {
    std::error_code left;  // nothing to be done about it
    fs::remove_all(parent_, left);
  }
  SentFolder(const SentFolder&) = delete;
  SentFolder& operator=(const SentFolder&) = delete;

  fs::path Of(const std::string& model) const { return parent_ / model; }

 private:
  const fs::path parent_;
};

namespace {

// A configuration or a version; folders of scripts and notes may lie among the models.
bool HoldsModel(const fs::path& folder) {
  std::error_code failed;
  if (fs::exists(folder / "config.pbtxt", failed)) return true;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    std::error_code ignored;
    if (VersionNumber(it->path().filename().string()) && it->is_directory(ignored)) return true;
  }
  return false;
}

bool HoldsGraph(const fs::path& folder) {
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    if (it->path().extension() == ".onnx") return true;
  }
  return false;
}

// The first, by name, of the folder's files that another framework has written; empty: none.
std::string ForeignModelIn(const fs::path& folder) {
  std::string first;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    std::string name = it->path().filename().string();
    if (IsForeignModel(it->path()) && (first.empty() || name < first)) first = std::move(name);
  }
  return first;
}

// Graphs in it, or one folder deeper, under a name that is no version: meant as a model, it seems.
bool ResemblesModel(const fs::path& folder) {
  if (HoldsGraph(folder)) return true;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    std::error_code ignored;
    if (it->is_directory(ignored) && HoldsGraph(it->path())) return true;
  }
  return false;
}

// Why nothing of what lies there, beside folders of models, is served; empty: it is no model.
std::string WhyOverlooked(const fs::path& path) {
  std::error_code ignored;
  const std::string text = path.string();
  if (!fs::is_directory(path, ignored)) {
    const bool foreign = IsForeignModel(path);
    if (!foreign && path.extension() != ".onnx") return "";
    const fs::path name = path.stem() == "model" ? fs::path("NAME") : path.stem();
    const fs::path place = path.parent_path() / name / "1" / "model.onnx";
    return foreign
               ? fmt::format(
                     "{}: is not served, as it is no ONNX graph: export the model to ONNX and "
                     "put the graph at {}",
                     text, place.string())
               : fmt::format("{}: is not served, as it lies in no folder of its own: put it at {}",
                             text, place.string());
  }
  if (ResemblesModel(path)) {
    return fmt::format(
        "{0}: is not served, as it has neither a config.pbtxt nor a version folder (1, 2, ...); "
        "put the model's files into {0}/1",
        text);
  }
  const std::string foreign = ForeignModelIn(path);
  if (foreign.empty()) return "";
  return fmt::format(
      "{0}: is not served, as it has neither a config.pbtxt nor a version folder (1, 2, ...), and "
      "{1} is no ONNX graph: export the model to ONNX and put the graph at {0}/1/model.onnx",
      text, foreign);
}

// Of a model without config.pbtxt: a file that seems to be meant as that. Empty: there is none.
std::string WhyNotConfigured(const fs::path& model) {
  std::error_code failed;
  const fs::path right = model / "config.pbtxt";
  if (fs::exists(right, failed)) return "";
  for (fs::recursive_directory_iterator it(model, failed), end; !failed && it != end;
       it.increment(failed)) {
    if (it.depth() > 0) it.disable_recursion_pending();
    std::string name = it->path().filename().string();
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    const bool meant = name.starts_with("config.pb") || name.starts_with("config.prototxt") ||
                       name == "config.txt";
    if (!meant) continue;
    return fmt::format("{}: is not read; move it to {}", it->path().string(), right.string());
  }
  return "";
}

// Protobuf and the metrics page take nothing else.
bool IsUtf8(const std::string& text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xC2 ? 0
                               : lead < 0xE0 ? 2
                               : lead < 0xF0 ? 3
                               : lead < 0xF5 ? 4
                                             : 0;
    if (length == 0 || i + length > text.size()) return false;
    std::uint32_t code = length == 1 ? lead : lead & (0x7F >> length);
    for (std::size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0) != 0x80) return false;
      code = code << 6 | (next & 0x3F);
    }
    if (length == 3 && (code < 0x800 || (code >= 0xD800 && code < 0xE000))) return false;
    if (length == 4 && (code < 0x10000 || code > 0x10FFFF)) return false;
    i += length;
  }
  return true;
}

// A name that is one folder or file and cannot lead out of where it is.
bool IsPlainName(const std::string& name) {
  return !name.empty() && IsUtf8(name) && name[0] != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

bool IsPlainPath(std::string_view path) {
  while (true) {
    const std::size_t slash = path.find('/');
    if (!IsPlainName(std::string(path.substr(0, slash)))) return false;
    if (slash == path.npos) return true;
    path.remove_prefix(slash + 1);
  }
}

Status WriteFile(const fs::path& path, const std::string& bytes) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  std::string why = failed.message();
  if (!failed) {
    errno = 0;
    std::ofstream file(path, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (file.close(), file) return {};
    why = WhyNotWritten(errno);
  }
  return Fail(ErrorCode::kUnavailable, fmt::format("{} cannot be written: {}", path.string(), why));
}

Expected<std::shared_ptr<const SentFolder>> Write(const std::string& model,
                                                  const ModelFiles& files) {
  std::error_code failed;
  std::string made = (fs::temp_directory_path(failed) / "tactus-model-XXXXXX").string();
  if (failed || ::mkdtemp(made.data()) == nullptr) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("there is no place for the files of model '{}': {}: {}", model, made,
                            failed ? failed.message() : std::strerror(errno)));
  }
  auto folder = std::make_shared<const SentFolder>(made);
  for (const auto& [path, bytes] : files) {
    if (Status written = WriteFile(folder->Of(model) / path, bytes); !written) {
      return std::unexpected(std::move(written.error()));
    }
  }
  return folder;
}

}  // namespace

std::optional<std::int64_t> VersionNumber(const std::string& name) {
  std::int64_t number = 0;
  const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (bad != std::errc() || end != name.data() + name.size() || number < 1) return std::nullopt;
  if (name.front() == '0') return std::nullopt;
  return number;
}

bool IsForeignModel(const fs::path& path) {
  constexpr std::string_view kEnds[] = {".pt",    ".pth",        ".safetensors", ".h5",
                                        ".keras", ".savedmodel", ".pb",          ".tflite"};
  return std::ranges::find(kEnds, path.extension().string()) != std::end(kEnds);
}

namespace {

// `unnamed`: the folders of models whose names are not UTF-8.
Expected<std::vector<std::string>> ListModels(const fs::path& repository,
                                              std::vector<fs::path>& unnamed) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator it(repository, failed), end; !failed && it != end;
       it.increment(failed)) {
    const std::string name = it->path().filename().string();
    const bool plain = IsPlainName(name);
    if ((!plain && IsUtf8(name)) || !HoldsModel(it->path())) continue;
    if (plain) {
      names.push_back(name);
    } else {
      unnamed.push_back(it->path());
    }
  }
  if (failed) {
    return NotFound(fmt::format(
        "the model repository '{}' cannot be read: {}; name the folder that holds those of the "
        "models (./models for ./models/NAME/1/model.onnx)",
        repository.string(), failed.message()));
  }
  std::ranges::sort(names);
  return names;
}

std::string WhyUnnamed(const fs::path& folder) {
  return fmt::format("{:?}: is not served, as the folder's name is not UTF-8; rename it",
                     folder.string());
}

}  // namespace

Expected<std::vector<std::string>> ListModels(const fs::path& repository) {
  std::vector<fs::path> unnamed;
  return ListModels(repository, unnamed);
}

std::string WhyNoRepository(const fs::path& folder) {
  const auto models = ListModels(folder);
  if (!models || !models->empty()) return "";
  fs::path whole = fs::absolute(folder).lexically_normal();
  if (whole.filename().empty()) whole = whole.parent_path();
  const bool version = VersionNumber(whole.filename().string()) && HoldsGraph(whole);
  if (!version && !HoldsModel(whole)) {
    if (!HoldsGraph(whole)) return "";
    return fmt::format(
        "{}: holds a graph, and a repository holds a folder for each model: put the graph at "
        "{} there",
        folder.string(), (folder / "NAME/1/model.onnx").string());
  }
  const fs::path model = version ? whole.parent_path() : whole;
  return fmt::format(
      "{}: is the folder of {} '{}', and a repository holds such folders: give its "
      "parent, --models {}",
      folder.string(), version ? "a version of model" : "model", model.filename().string(),
      model.parent_path().string());
}

ModelFolders::ModelFolders(std::vector<fs::path> repositories)
    : repositories_(std::move(repositories)) {}

ModelFolders::~ModelFolders() = default;

fs::path ModelFolders::Of(const std::string& model) const {
  if (!IsPlainName(model)) return {};
  {
    const std::lock_guard lock(mutex_);
    if (const auto sent = sent_.find(model); sent != sent_.end()) return sent->second->Of(model);
  }
  for (const fs::path& each : repositories_) {
    if (HoldsModel(each / model)) return each / model;
  }
  return repositories_.empty() ? fs::path() : repositories_.front() / model;
}

Status ModelFolders::Check(const std::string& model) const {
  const fs::path folder = Of(model);
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    return NotFound(fmt::format("model '{}' is not in the model repository", model));
  }
  {
    const std::lock_guard lock(mutex_);
    if (sent_.contains(model)) return {};
  }
  for (const fs::path& each : repositories_) {
    const fs::path other = each / model;
    if (!HoldsModel(other) || other == folder) continue;
    return InvalidArgument(fmt::format("model '{}' is in two repositories, as {} and {}: keep one",
                                       model, folder.string(), other.string()));
  }
  return {};
}

Expected<std::vector<std::string>> ModelFolders::List() const {
  std::vector<std::string> names = WithFiles();
  std::vector<fs::path> unnamed;
  for (const fs::path& each : repositories_) {
    const auto found = ListModels(each, unnamed);
    if (!found) return found;
    names.insert(names.end(), found->begin(), found->end());
  }
  NoteUnnamed(unnamed);
  std::ranges::sort(names);
  const auto twice = std::ranges::unique(names);
  names.erase(twice.begin(), twice.end());
  return names;
}

void ModelFolders::NoteUnnamed(const std::vector<fs::path>& there) const {
  const std::lock_guard lock(mutex_);
  std::map<fs::path, bool> now;
  for (const fs::path& each : there) {
    const auto before = unnamed_.find(each);
    now[each] = before != unnamed_.end() && before->second;
  }
  unnamed_ = std::move(now);
}

std::vector<std::string> ModelFolders::NewlyUnnamed() const {
  std::vector<std::string> lines;
  const std::lock_guard lock(mutex_);
  for (auto& [folder, named] : unnamed_) {
    if (!std::exchange(named, true)) lines.push_back(WhyUnnamed(folder));
  }
  return lines;
}

std::vector<std::string> ModelFolders::Overlooked() const {
  (void)List();
  std::vector<std::string> doubts = NewlyUnnamed();
  for (const fs::path& each : repositories_) {
    if (std::string why = WhyNoRepository(each); !why.empty()) {
      doubts.push_back(std::move(why));
      continue;  // what it holds is a model's
    }
    std::error_code failed;
    for (fs::directory_iterator it(each, failed), end; !failed && it != end; it.increment(failed)) {
      const fs::path& path = it->path();
      const std::string name = path.filename().string();
      if (!IsPlainName(name)) continue;
      std::string why = HoldsModel(path) ? WhyNotConfigured(path) : WhyOverlooked(path);
      if (!why.empty()) doubts.push_back(std::move(why));
    }
  }
  std::ranges::sort(doubts);
  return doubts;
}

std::string ModelFolders::Text() const {
  std::string text;
  for (const fs::path& each : repositories_) {
    text += (text.empty() ? "" : ", ") + each.string();
  }
  return text;
}

Expected<ModelFolders::Sent> ModelFolders::Take(const std::string& model, const ModelFiles& files) {
  if (!IsPlainName(model)) {
    return InvalidArgument(fmt::format("'{}' cannot be a model's name", model));
  }
  for (const auto& [path, bytes] : files) {
    if (!IsPlainPath(path)) {
      return InvalidArgument(fmt::format(
          "file '{}' is no path in the folder of model '{}'; such as 1/model.onnx", path, model));
    }
  }
  std::unique_lock turn(turn_);
  auto folder = Write(model, files);
  if (!folder) return std::unexpected(std::move(folder.error()));
  Sent sent(*this, model, std::move(turn));
  const std::lock_guard lock(mutex_);
  sent.before_ = std::exchange(sent_[model], *std::move(folder));
  return sent;
}

void ModelFolders::Forget(const std::string& model) {
  const std::lock_guard turn(turn_);  // not in the middle of a trial
  const std::lock_guard lock(mutex_);
  sent_.erase(model);
}

std::vector<std::string> ModelFolders::WithFiles() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [model, folder] : sent_) names.push_back(model);
  return names;
}

ModelFolders::Sent::Sent(ModelFolders& folders, std::string model,
                         std::unique_lock<std::mutex> turn)
    : folders_(&folders), model_(std::move(model)), turn_(std::move(turn)) {}

ModelFolders::Sent::Sent(Sent&& other) noexcept
    : folders_(std::exchange(other.folders_, nullptr)),
      model_(std::move(other.model_)),
      before_(std::move(other.before_)),
      turn_(std::move(other.turn_)) {}

ModelFolders::Sent::~Sent() {
  if (folders_ == nullptr) return;
  const std::lock_guard lock(folders_->mutex_);
  if (before_ == nullptr) {
    folders_->sent_.erase(model_);
  } else {
    folders_->sent_[model_] = std::move(before_);
  }
}

void ModelFolders::Sent::Keep() { folders_ = nullptr; }

}  // namespace tactus
