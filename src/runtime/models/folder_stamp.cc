#include "runtime/models/folder_stamp.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "base/fnv.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSecond = 1'000'000'000;
// The coarsest times count in steps of two seconds; the rest is for clocks that differ.
constexpr std::int64_t kYoung = 5 * kSecond;

std::uint64_t Mixed(std::uint64_t hash, std::uint64_t value) {
  return Fnv1a({reinterpret_cast<const char*>(&value), sizeof value}, hash);
}

// All below a folder, each folder once, in an order that depends on names alone.
class FilesBelow {
 public:
  explicit FilesBelow(const fs::path& folder) { Add(folder); }
  const std::vector<fs::path>& paths() const { return paths_; }

 private:
  void Add(const fs::path& path) {
    paths_.push_back(path);
    struct stat s {};
    if (stat(path.c_str(), &s) != 0 || !S_ISDIR(s.st_mode)) return;
    if (!folders_.emplace(s.st_dev, s.st_ino).second) return;  // a link to a folder above
    std::vector<fs::path> entries;
    std::error_code failed;
    for (fs::directory_iterator it(path, failed), end; !failed && it != end; it.increment(failed)) {
      entries.push_back(it->path());
    }
    std::ranges::sort(entries);
    for (const fs::path& entry : entries) Add(entry);
  }

  std::vector<fs::path> paths_;
  std::set<std::pair<dev_t, ino_t>> folders_;
};

std::uint64_t Contents(const std::vector<fs::path>& paths) {
  std::uint64_t hash = kFnvStart;
  std::vector<char> part(std::size_t{1} << 20);
  for (const fs::path& path : paths) {
    std::error_code failed;
    if (!fs::is_regular_file(path, failed)) continue;  // a pipe would never end
    std::ifstream file(path, std::ios::binary);
    while (file.read(part.data(), static_cast<std::streamsize>(part.size())) || file.gcount() > 0) {
      hash = Fnv1a({part.data(), static_cast<std::size_t>(file.gcount())}, hash);
    }
  }
  return hash;
}

std::int64_t Nanoseconds(const timespec& t) { return t.tv_sec * kSecond + t.tv_nsec; }

}  // namespace

FileFacts SystemFacts(const fs::path& path, bool follow) {
  struct stat s {};
  if ((follow ? stat(path.c_str(), &s) : lstat(path.c_str(), &s)) != 0) return {};
  return {S_ISREG(s.st_mode) ? static_cast<std::uint64_t>(s.st_size) : 0, Nanoseconds(s.st_mtim),
          Nanoseconds(s.st_ctim)};
}

FolderStamp FolderStamp::Of(const fs::path& folder, std::int64_t now, const FactsOf& facts) {
  const FilesBelow files(folder);
  FolderStamp stamp;
  stamp.facts_ = kFnvStart;
  for (const fs::path& path : files.paths()) {
    stamp.facts_ = Fnv1a(path.native(), stamp.facts_);
    for (const bool follow : {false, true}) {
      const FileFacts is = facts(path, follow);
      stamp.facts_ =
          Mixed(Mixed(Mixed(stamp.facts_, is.size), static_cast<std::uint64_t>(is.written)),
                static_cast<std::uint64_t>(is.changed));
      stamp.young_ |= is.changed % kSecond == 0 && now - is.changed < kYoung;
    }
  }
  if (stamp.young_) stamp.contents_ = Contents(files.paths());
  return stamp;
}

bool FolderStamp::StillHolds(const fs::path& folder, std::int64_t now, const FactsOf& facts) {
  FolderStamp is = Of(folder, now, facts);
  if (is.facts_ != facts_) return false;
  if (young_) {
    const std::uint64_t contents = is.young_ ? is.contents_ : Contents(FilesBelow(folder).paths());
    if (contents != contents_) return false;
  }
  *this = is;
  return true;
}

}  // namespace tactus
