// The models that a controller offers to its nodes: a repository as it was when it was read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/expected.h"
#include "cluster/models/digest.h"

namespace tactus {

class Catalogue {
 public:
  // The models that have to lie beside a model, by their names. Given by whoever knows the format
  // of configurations.
  using NeedsOf = std::function<std::vector<std::string>(const std::filesystem::path& folder)>;

  // Lists those of `models` that the repository has, with what they need. Reads every byte of them.
  // An error names the file, or the models that need each other.
  static Expected<Catalogue> Read(const std::filesystem::path& root,
                                  const std::set<std::string>& models, const NeedsOf& needs);

  // By name, the digests of their manifests.
  const std::map<std::string, std::string>& digests() const { return digests_; }
  // The models that the repository lacks.
  const std::vector<std::string>& missing() const { return missing_; }
  std::uint64_t bytes() const;  // of all, each digest once

  struct Blob {
    std::filesystem::path file;  // empty: `text` is all of it
    std::string text;
    std::uint64_t size = 0;
  };
  const Blob* Find(const Digest& digest) const;  // null: it has none of it

 private:
  Expected<Digest> Add(const std::filesystem::path& root, const std::string& model,
                       const NeedsOf& needs, std::set<std::string>& above);

  std::map<std::string, std::string> digests_;
  std::vector<std::string> missing_;
  std::map<Digest, Blob> blobs_;
  std::map<std::string, Digest> read_;
};

}  // namespace tactus
