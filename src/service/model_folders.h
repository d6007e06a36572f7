// Where the folders of models are: in one or several repositories, and in place of those what
// clients sent along with a load. REPOSITORY/<model>/config.pbtxt, REPOSITORY/<model>/<version>/...
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/expected.h"

namespace tactus {

// Contents by paths in the model's folder: "1/model.onnx".
using ModelFiles = std::map<std::string, std::string>;

// The number that a version's folder has as its name: 1, 2, ... "01" is none: there would be two
// names for one number.
std::optional<std::int64_t> VersionNumber(const std::string& name);

// Whether it is a model that another framework has written, by the end of its name: model.pt.
bool IsForeignModel(const std::filesystem::path& path);

// The folders of models in one repository, by name, ascending. NotFound where it cannot be read.
Expected<std::vector<std::string>> ListModels(const std::filesystem::path& repository);

// Where somebody named a model's own folder as a repository, or one of a version or of bare graphs:
// a line that says so and what to name instead. Empty: it is no such folder.
std::string WhyNoRepository(const std::filesystem::path& folder);

// Thread-safe.
class ModelFolders {
 public:
  explicit ModelFolders(std::vector<std::filesystem::path> repositories);
  ~ModelFolders();  // removes what clients sent

  // The folder that a model is loaded from: what a client sent, or that of the first repository
  // that has one. Where there is none, where the first repository would have it; empty for a name
  // that is no folder's.
  std::filesystem::path Of(const std::string& model) const;
  // InvalidArgument, with both places, for a model that two repositories have: which one would be
  // served? NotFound for one that has no folder.
  Status Check(const std::string& model) const;
  // All models, by name, ascending. NotFound where a repository cannot be read.
  Expected<std::vector<std::string>> List() const;
  // What to say of what seems to be meant as a model and is none, as where the version's folder is
  // missing, of repositories that are none (WhyNoRepository), and of configurations that lie where
  // nobody reads them.
  std::vector<std::string> Overlooked() const;
  // Of the folders of models whose names are not UTF-8, which List leaves out, those that have come
  // since this or Overlooked named them last: a line for each. One that goes and comes is new.
  std::vector<std::string> NewlyUnnamed() const;
  // The repositories for people: "a, b".
  std::string Text() const;

  // Files that a client sent for a model, on trial until Keep: then they hold until Forget or until
  // others are kept. Without Keep those before hold again. One at a time; whoever asks for a second
  // one waits.
  class Sent {
   public:
    Sent(Sent&&) noexcept;
    Sent& operator=(Sent&&) = delete;
    ~Sent();
    void Keep();

   private:
    friend class ModelFolders;
    Sent(ModelFolders& folders, std::string model, std::unique_lock<std::mutex> turn);

    ModelFolders* folders_;  // null: kept, or moved from
    std::string model_;
    std::shared_ptr<const class SentFolder> before_;  // null: there was none
    std::unique_lock<std::mutex> turn_;
  };
  // Writes them into a folder of their own. InvalidArgument for a name or a path that would lead
  // out of the folder, kUnavailable where they cannot be written.
  Expected<Sent> Take(const std::string& model, const ModelFiles& files);
  // The model's folder is a repository's again.
  void Forget(const std::string& model);
  // The models with files of clients.
  std::vector<std::string> WithFiles() const;

 private:
  // As List found them.
  void NoteUnnamed(const std::vector<std::filesystem::path>& there) const;

  const std::vector<std::filesystem::path> repositories_;
  std::mutex turn_;
  mutable std::mutex mutex_;                               // of the maps
  mutable std::map<std::filesystem::path, bool> unnamed_;  // whether it was named
  std::map<std::string, std::shared_ptr<const SentFolder>> sent_;
};

}  // namespace tactus
