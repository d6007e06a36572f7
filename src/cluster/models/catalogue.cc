#include "cluster/models/catalogue.h"

#include <algorithm>
#include <utility>

#include "cluster/models/manifest.h"

namespace tactus {

Expected<Catalogue> Catalogue::Read(const std::filesystem::path& root,
                                    const std::set<std::string>& models, const NeedsOf& needs) {
  Catalogue catalogue;
  std::error_code code;
  if (!std::filesystem::is_directory(root, code)) {
    return NotFound(root.string() + ": no folder of models");
  }
  for (const std::string& model : models) {
    if (!IsPlainName(model) || !std::filesystem::is_directory(root / model, code)) {
      catalogue.missing_.push_back(model);
      continue;
    }
    std::set<std::string> above;
    const auto digest = catalogue.Add(root, model, needs, above);
    if (!digest) return std::unexpected(digest.error());
    catalogue.digests_[model] = digest->text();
  }
  return catalogue;
}

Expected<Digest> Catalogue::Add(const std::filesystem::path& root, const std::string& model,
                                const NeedsOf& needs, std::set<std::string>& above) {
  if (const auto known = read_.find(model); known != read_.end()) return known->second;
  const std::filesystem::path folder = root / model;
  if (!above.insert(model).second) {
    return InvalidArgument(folder.string() + ": this model needs one that needs it in turn");
  }
  auto manifest = ReadManifest(folder);
  if (!manifest) return std::unexpected(std::move(manifest.error()));
  for (const Manifest::File& each : manifest->files) {
    blobs_[each.digest] = {.file = folder / each.path, .text = {}, .size = each.size};
  }
  std::vector<std::string> names = needs ? needs(folder) : std::vector<std::string>{};
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  for (const std::string& name : names) {
    std::error_code code;
    if (!IsPlainName(name) || !std::filesystem::is_directory(root / name, code)) {
      return NotFound(folder.string() + ": it needs the model '" + name + "', which is not in " +
                      root.string());
    }
    const auto digest = Add(root, name, needs, above);
    if (!digest) return digest;
    manifest->needs.push_back({name, *digest});
  }
  above.erase(model);
  std::string text = TextOf(*manifest);
  if (text.size() > kMostManifest) {
    return InvalidArgument(folder.string() + ": there are too many files in this model");
  }
  const Digest digest = DigestOf(text);
  blobs_[digest] = {.file = {}, .text = text, .size = text.size()};
  read_[model] = digest;
  return digest;
}

std::uint64_t Catalogue::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [digest, blob] : blobs_) sum += blob.size;
  return sum;
}

const Catalogue::Blob* Catalogue::Find(const Digest& digest) const {
  const auto found = blobs_.find(digest);
  return found == blobs_.end() ? nullptr : &found->second;
}

}  // namespace tactus
