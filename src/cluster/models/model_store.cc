#include "cluster/models/model_store.h"

#include <algorithm>
#include <map>

#include "base/whole_file.h"
#include "platform/durable_file.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBlobs = "blobs";
constexpr const char* kManifests = "manifests";
constexpr const char* kTrees = "trees";

std::unexpected<Error> DiskFailed(const fs::path& path, const std::error_code& code) {
  const bool full = code == std::errc::no_space_on_device;
  return Fail(full ? ErrorCode::kResourceExhausted : ErrorCode::kInternal,
              path.string() + ": " + code.message() + (full ? "; make room there" : ""));
}

// The digests after which the folder's entries are named, with their paths.
std::vector<std::pair<Digest, fs::path>> Named(const fs::path& folder) {
  std::vector<std::pair<Digest, fs::path>> named;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    if (const auto digest = Digest::Parse(it->path().stem().string())) {
      named.emplace_back(*digest, it->path());
    }
  }
  return named;
}

}  // namespace

Expected<ModelStore> ModelStore::Open(ModelStoreOptions options) {
  std::error_code code;
  options.state = fs::weakly_canonical(fs::absolute(options.state), code);
  if (!options.own.empty()) options.own = fs::weakly_canonical(fs::absolute(options.own), code);
  ModelStore store(std::move(options));
  for (const fs::path& each : {store.repository(), store.CacheFolder(kBlobs),
                               store.CacheFolder(kManifests), store.CacheFolder(kTrees)}) {
    fs::create_directories(each, code);
    if (code) return DiskFailed(each, code);
  }
  if (Status linked = store.LinkOwn(); !linked) return std::unexpected(std::move(linked.error()));
  return store;
}

fs::path ModelStore::BlobPath(const Digest& blob) const {
  return CacheFolder(kBlobs) / blob.text();
}

std::optional<Manifest> ModelStore::FindManifest(const Digest& digest) const {
  const fs::path path = CacheFolder(kManifests) / digest.text();
  std::error_code code;
  if (!fs::exists(path, code)) return std::nullopt;
  const auto text = ReadWhole(path, "manifest");
  auto manifest = text && DigestOf(*text) == digest ? ParseManifest(*text)
                                                    : Expected<Manifest>(InvalidArgument(""));
  if (!manifest) {
    fs::remove(path, code);
    return std::nullopt;
  }
  fs::last_write_time(path, fs::file_time_type::clock::now(), code);
  return *std::move(manifest);
}

std::set<std::string> ModelStore::NeededBy(const std::set<std::string>& digests) const {
  std::set<std::string> names;
  std::vector<Digest> open;
  for (const std::string& each : digests) {
    if (const auto digest = Digest::Parse(each)) open.push_back(*digest);
  }
  std::set<Digest> seen;
  while (!open.empty()) {
    const Digest each = open.back();
    open.pop_back();
    if (!seen.insert(each).second) continue;
    const auto manifest = FindManifest(each);
    for (const Manifest::Need& need : manifest.value_or(Manifest{}).needs) {
      names.insert(need.name);
      open.push_back(need.manifest);
    }
  }
  return names;
}

Status ModelStore::KeepManifest(const Digest& digest, std::string_view text) const {
  auto file = DurableFile::Open(CacheFolder(kManifests) / digest.text());
  if (!file) return std::unexpected(std::move(file.error()));
  if (Status empty = file->Empty(); !empty) return empty;
  if (Status written = file->Append(text); !written) return written;
  return file->Keep();
}

bool ModelStore::HasBlob(const Digest& blob) {
  const fs::path path = BlobPath(blob);
  std::error_code code;
  if (!fs::exists(path, code)) return false;
  if (checked_.contains(blob)) return true;
  const auto sum = DigestOfFile(path);
  if (sum && sum->digest == blob) {
    checked_.insert(blob);
    return true;
  }
  fs::remove(path, code);
  // Its trees have the same bytes.
  for (const auto& [tree, folder] : Named(CacheFolder(kTrees))) {
    const auto manifest = FindManifest(tree);
    if (manifest && std::ranges::find(manifest->files, blob, &Manifest::File::digest) ==
                        manifest->files.end()) {
      continue;
    }
    fs::remove_all(folder, code);
  }
  return false;
}

CacheContent ModelStore::Content(const std::set<Digest>& wanted) const {
  CacheContent content;
  std::error_code code;
  for (const auto& [digest, path] : Named(CacheFolder(kBlobs))) {
    const auto size = fs::file_size(path, code);
    content.blobs[digest] += code ? 0 : size;
  }
  std::map<Digest, Manifest> manifests;
  for (const auto& [digest, path] : Named(CacheFolder(kManifests))) {
    if (path.has_extension()) continue;
    const auto text = ReadWhole(path, "manifest");
    auto manifest = text ? ParseManifest(*text) : Expected<Manifest>(InvalidArgument(""));
    if (!manifest) continue;
    CachedModel model{.manifest = digest, .blobs = {}};
    model.used = fs::last_write_time(path, code).time_since_epoch().count();
    std::set<Digest> blobs;
    for (const Manifest::File& each : manifest->files) blobs.insert(each.digest);
    model.blobs.assign(blobs.begin(), blobs.end());
    content.models.push_back(std::move(model));
    manifests[digest] = *std::move(manifest);
  }
  std::vector<Digest> open(wanted.begin(), wanted.end());
  std::set<Digest> stays;
  while (!open.empty()) {
    const Digest each = open.back();
    open.pop_back();
    if (!stays.insert(each).second || !manifests.contains(each)) continue;
    for (const Manifest::Need& need : manifests[each].needs) open.push_back(need.manifest);
  }
  for (CachedModel& model : content.models) model.wanted = stays.contains(model.manifest);
  return content;
}

Status ModelStore::MakeRoomFor(const std::vector<Manifest::File>& coming,
                               const std::set<Digest>& wanted) {
  CacheContent content = Content(wanted);
  for (const Manifest::File& each : coming) {
    content.coming.insert(each.digest);
    const auto here = content.blobs.find(each.digest);
    const std::uint64_t has = here == content.blobs.end() ? 0 : here->second;
    content.more += each.size - std::min(each.size, has);
  }
  const auto gone = MakeRoom(content, options_.most_bytes);
  if (!gone) return std::unexpected(gone.error());
  std::error_code code;
  for (const Digest& each : gone->models) {
    fs::remove_all(CacheFolder(kTrees) / each.text(), code);
    fs::remove(CacheFolder(kManifests) / each.text(), code);
  }
  for (const Digest& each : gone->blobs) {
    fs::remove(BlobPath(each), code);
    fs::remove(PartOf(BlobPath(each)), code);
    checked_.erase(each);
  }
  // Not first when the disk is full: others write there too.
  const fs::space_info disk = fs::space(CacheFolder(kBlobs), code);
  if (code || disk.available >= content.more) return {};
  return Fail(ErrorCode::kResourceExhausted,
              CacheFolder(kBlobs).string() + ": " + std::to_string(content.more) +
                  " bytes are to come, and the disk has room for " +
                  std::to_string(disk.available) + "; make room there");
}

std::optional<fs::path> ModelStore::OwnFolder(const std::string& name,
                                              const Manifest& manifest) const {
  if (options_.own.empty()) return std::nullopt;
  const fs::path folder = options_.own / name;
  // Sizes first: mostly they tell, and cost nothing.
  for (const Manifest::File& each : manifest.files) {
    std::error_code code;
    if (fs::file_size(folder / each.path, code) != each.size || code) return std::nullopt;
  }
  const auto own = ReadManifest(folder);
  if (!own || own->files != manifest.files || own->folders != manifest.folders) return std::nullopt;
  return folder;
}

Status ModelStore::MakeTree(const fs::path& tree, const Manifest& manifest) const {
  fs::path aside = tree;
  aside += ".new";
  std::error_code code;
  fs::remove_all(aside, code);
  fs::create_directories(aside, code);
  for (const std::string& each : manifest.folders) {
    if (!code) fs::create_directories(aside / each, code);
  }
  for (const Manifest::File& each : manifest.files) {
    if (!code) fs::create_directories((aside / each.path).parent_path(), code);
    if (code) break;
    fs::create_hard_link(BlobPath(each.digest), aside / each.path, code);
    // Where there are no hard links, or too many.
    if (code) fs::copy_file(BlobPath(each.digest), aside / each.path, code);
  }
  if (!code) fs::rename(aside, tree, code);
  if (code) return DiskFailed(aside, code);
  return {};
}

Expected<fs::path> ModelStore::Tree(const Digest& digest, const Manifest& manifest) const {
  const fs::path tree = CacheFolder(kTrees) / digest.text();
  std::error_code code;
  const bool whole = std::ranges::all_of(manifest.files, [&](const Manifest::File& each) {
    return fs::equivalent(tree / each.path, BlobPath(each.digest), code);
  });
  if (whole && fs::exists(tree, code)) return tree;
  fs::remove_all(tree, code);
  if (Status made = MakeTree(tree, manifest); !made) {
    return std::unexpected(std::move(made.error()));
  }
  return tree;
}

Status ModelStore::Link(const std::string& name, const fs::path& folder) const {
  const std::scoped_lock lock(*linking_);
  return LinkNow(name, folder);
}

Status ModelStore::LinkNow(const std::string& name, const fs::path& folder) const {
  const fs::path link = repository() / name;
  fs::path aside = repository() / ("." + name + ".new");
  std::error_code code;
  fs::remove(aside, code);
  fs::create_directory_symlink(folder, aside, code);
  if (!code) fs::rename(aside, link, code);
  if (code) return DiskFailed(link, code);
  return {};
}

Status ModelStore::LinkOwn(const std::string& name) const {
  std::error_code failed;
  if (options_.own.empty()) return {};
  const std::scoped_lock lock(*linking_);
  for (fs::directory_iterator it(options_.own, failed), end; !failed && it != end;
       it.increment(failed)) {
    const std::string own = it->path().filename().string();
    std::error_code code;
    if (!IsPlainName(own) || !fs::is_directory(it->path(), code)) continue;
    const fs::path link = repository() / own;
    const fs::path to = fs::read_symlink(link, code);
    const bool ours = !code && to.parent_path() == CacheFolder(kTrees) && fs::exists(link, code);
    if (to == it->path() || (ours && own != name)) continue;
    if (Status linked = LinkNow(own, it->path()); !linked) return linked;
  }
  if (failed) return NotFound(options_.own.string() + ": " + failed.message());
  return {};
}

}  // namespace tactus
