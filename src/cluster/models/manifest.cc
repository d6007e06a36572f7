#include "cluster/models/manifest.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

namespace tactus {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFirstLine = "tactus model 1";
constexpr std::size_t kMostPath = 1024;
constexpr std::size_t kMostPathName = 255;
constexpr std::uint64_t kMostFile = std::uint64_t{1} << 44;  // bytes
constexpr std::size_t kMostEntries = 20'000;
constexpr int kDeepestFolder = 32;

bool IsPathName(std::string_view name) {
  if (name.empty() || name.size() > kMostPathName || name == "." || name == "..") return false;
  return std::ranges::none_of(name, [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return code < 0x20 || code == 0x7f || c == '/';
  });
}

bool IsPath(std::string_view path) {
  if (path.size() > kMostPath) return false;
  for (;;) {
    const std::size_t slash = path.find('/');
    if (!IsPathName(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

// Why the files and folders cannot lie in one folder; empty: they can.
std::string Clash(const Manifest& manifest) {
  std::set<std::string_view> files;
  for (const Manifest::File& each : manifest.files) files.insert(each.path);
  const auto below_a_file = [&](std::string_view path) {
    for (std::size_t at = path.find('/'); at != path.npos; at = path.find('/', at + 1)) {
      if (files.contains(path.substr(0, at))) return true;
    }
    return false;
  };
  for (const Manifest::File& each : manifest.files) {
    if (below_a_file(each.path)) return "'" + each.path + "' lies below a file";
  }
  for (const std::string& each : manifest.folders) {
    if (files.contains(each) || below_a_file(each)) return "'" + each + "' is a file too";
  }
  return "";
}

class ManifestReader {
 public:
  explicit ManifestReader(std::string_view text) : rest_(text) {}

  Expected<Manifest> Read() {
    if (Line() != kFirstLine) {
      return Wrong("it does not begin with '" + std::string(kFirstLine) + "'");
    }
    while (!rest_.empty()) {
      std::string_view line = Line();
      const std::string_view kind = Word(line);
      if (++entries_ > kMostEntries) return Wrong("there are too many entries");
      const bool fine = kind == "needs"    ? Need(line)
                        : kind == "folder" ? Folder(line)
                                           : File(kind, line);
      if (!fine) return Wrong(why_);
    }
    if (const std::string clash = Clash(manifest_); !clash.empty()) return Wrong(clash);
    return std::move(manifest_);
  }

 private:
  std::string_view Line() {
    ++line_;
    const std::size_t end = rest_.find('\n');
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
    return line;
  }
  static std::string_view Word(std::string_view& line) {
    const std::size_t end = line.find(' ');
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(end == line.npos ? line.size() : end + 1);
    return word;
  }
  bool Need(std::string_view line) {
    const auto digest = Digest::Parse(Word(line));
    why_ = "it needs a model without a valid name or digest";
    if (!digest || !IsPlainName(line)) return false;
    manifest_.needs.push_back({std::string(line), *digest});
    return true;
  }
  bool Folder(std::string_view line) {
    why_ = "a folder's path leaves the model's folder, or is not a path";
    if (!IsPath(line)) return false;
    manifest_.folders.emplace_back(line);
    return true;
  }
  bool File(std::string_view kind, std::string_view line) {
    why_ = "it is neither a file nor a folder nor a need";
    if (kind != "file") return false;
    const auto digest = Digest::Parse(Word(line));
    const std::string_view digits = Word(line);
    std::uint64_t size = 0;
    const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    why_ = "a file's digest or size is not valid";
    if (!digest || bad != std::errc() || end != digits.data() + digits.size()) return false;
    if (size > kMostFile) return false;
    why_ = "a file's path leaves the model's folder, or is not a path";
    if (!IsPath(line)) return false;
    manifest_.files.push_back({std::string(line), size, *digest});
    return true;
  }
  std::unexpected<Error> Wrong(const std::string& why) const {
    return InvalidArgument("line " + std::to_string(line_) + " of a manifest: " + why);
  }

  std::string_view rest_;
  Manifest manifest_;
  int line_ = 0;
  std::size_t entries_ = 0;
  std::string why_;
};

class FolderReader {
 public:
  explicit FolderReader(fs::path root) : root_(std::move(root)) {}

  Expected<Manifest> Read() {
    if (Status read = Add(root_, "", 0); !read) return std::unexpected(std::move(read.error()));
    std::ranges::sort(manifest_.files, {}, &Manifest::File::path);
    std::ranges::sort(manifest_.folders);
    return std::move(manifest_);
  }

 private:
  Status Add(const fs::path& folder, const std::string& path, int depth) {
    if (depth > kDeepestFolder) return InvalidArgument(folder.string() + ": folders lie too deep");
    std::error_code failed;
    bool empty = true;
    for (fs::directory_iterator it(folder, failed), end; !failed && it != end;
         it.increment(failed)) {
      empty = false;
      const std::string name = it->path().filename().string();
      const std::string below = path.empty() ? name : path + "/" + name;
      if (!IsPath(below) || ++entries_ > kMostEntries) {
        return InvalidArgument(it->path().string() +
                               ": the name is not allowed in a model, or the model has too many "
                               "files; move it out of the model's folder");
      }
      if (Status added = AddEntry(*it, below, depth); !added) return added;
    }
    if (failed) return NotFound(folder.string() + ": " + failed.message());
    if (empty && !path.empty()) manifest_.folders.push_back(path);
    return {};
  }
  Status AddEntry(const fs::directory_entry& entry, const std::string& path, int depth) {
    std::error_code failed;
    const fs::file_status status = entry.status(failed);
    if (fs::is_directory(status)) return Add(entry.path(), path, depth + 1);
    if (!fs::is_regular_file(status)) {
      return InvalidArgument(entry.path().string() +
                             ": neither a file nor a folder; move it out of the model's folder");
    }
    const auto digest = DigestOfFile(entry.path());
    if (!digest) return std::unexpected(digest.error());
    manifest_.files.push_back({path, digest->size, digest->digest});
    return {};
  }

  const fs::path root_;
  Manifest manifest_;
  std::size_t entries_ = 0;
};

}  // namespace

bool IsPlainName(std::string_view name) { return IsPathName(name) && !name.starts_with('.'); }

std::uint64_t Manifest::bytes() const {
  std::uint64_t sum = 0;
  for (const File& each : files) sum += each.size;
  return sum;
}

std::string TextOf(const Manifest& manifest) {
  std::string text(kFirstLine);
  text += '\n';
  for (const Manifest::Need& each : manifest.needs) {
    text += "needs " + each.manifest.text() + " " + each.name + "\n";
  }
  for (const std::string& each : manifest.folders) text += "folder " + each + "\n";
  for (const Manifest::File& each : manifest.files) {
    text += "file " + each.digest.text() + " " + std::to_string(each.size) + " " + each.path + "\n";
  }
  return text;
}

Expected<Manifest> ParseManifest(std::string_view text) {
  if (text.size() > kMostManifest) return InvalidArgument("a manifest that is too long");
  auto manifest = ManifestReader(text).Read();
  if (!manifest) return manifest;
  const auto rises = [](const auto& list, auto key) {
    return std::ranges::adjacent_find(list, std::greater_equal<>(), key) == list.end();
  };
  if (!rises(manifest->needs, &Manifest::Need::name) ||
      !rises(manifest->folders, std::identity()) ||
      !rises(manifest->files, &Manifest::File::path)) {
    return InvalidArgument("a manifest that has a name twice, or not in ascending order");
  }
  if (TextOf(*manifest) != text) return InvalidArgument("a manifest that is not in canonical form");
  return manifest;
}

Expected<Manifest> ReadManifest(const fs::path& model_folder) {
  return FolderReader(model_folder).Read();
}

std::vector<Manifest::File> Lacking(const Manifest& manifest,
                                    const std::function<bool(const Digest&)>& here) {
  std::vector<Manifest::File> lacking;
  std::set<Digest> asked;
  for (const Manifest::File& each : manifest.files) {
    if (!here(each.digest) && asked.insert(each.digest).second) lacking.push_back(each);
  }
  return lacking;
}

}  // namespace tactus
