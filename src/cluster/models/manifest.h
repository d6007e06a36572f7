// What a model's folder holds: each file with its size and digest, and the models that have to lie
// beside it. A manifest has one text, so the text's digest stands for all of the model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "cluster/models/digest.h"

namespace tactus {

// One file or folder of a folder of models: no way out of it, and not hidden.
bool IsPlainName(std::string_view name);

struct Manifest {
  struct File {
    std::string path;  // in the model's folder, with /
    std::uint64_t size = 0;
    Digest digest;
    bool operator==(const File&) const = default;
  };
  struct Need {
    std::string name;
    Digest manifest;
    bool operator==(const Need&) const = default;
  };
  // Each in ascending order.
  std::vector<Need> needs;           // the steps of an ensemble, say
  std::vector<std::string> folders;  // those with nothing in them
  std::vector<File> files;

  bool operator==(const Manifest&) const = default;
  std::uint64_t bytes() const;  // of all files
};

inline constexpr std::size_t kMostManifest = 4 << 20;  // bytes of its text

std::string TextOf(const Manifest& manifest);
// kInvalidArgument names line and reason: a path that leaves the model's folder, two files of one
// path, a file that is another's folder, anything but the one text of what it says.
Expected<Manifest> ParseManifest(std::string_view text);

// The model in that folder, without needs. Links are followed. An error names the file: one that
// cannot be read, or is neither a file nor a folder, or has a name that no manifest can have.
Expected<Manifest> ReadManifest(const std::filesystem::path& model_folder);

// Its files that are not `here`, each digest once.
std::vector<Manifest::File> Lacking(const Manifest& manifest,
                                    const std::function<bool(const Digest&)>& here);

}  // namespace tactus
