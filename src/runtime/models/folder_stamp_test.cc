// Polling must notice every way in which people replace the files of a model, and nothing else.
#include "runtime/models/folder_stamp.h"

#include <chrono>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t Now() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

void Write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

class FolderStamps : public ::testing::Test {
 protected:
  void SetUp() override {
    Write(model_ / "1/model.onnx", "graph");
    Write(model_ / "1/model.onnx.data", "weights");
    Write(root_ / "releases/1/model.onnx", "first");
    Write(root_ / "releases/2/model.onnx", "other");
    fs::create_symlink(root_ / "releases/1", model_ / "2");
    Write(root_ / "blobs/a", "one");
    Write(root_ / "blobs/b", "two");
    fs::create_symlink(root_ / "blobs/a", model_ / "labels");
  }
  // As `cp -p` or a careful rsync has it.
  static void KeepingTime(const fs::path& path, const std::function<void()>& change) {
    const auto written = fs::last_write_time(path);
    const auto folder = fs::last_write_time(path.parent_path());
    change();
    fs::last_write_time(path, written);
    fs::last_write_time(path.parent_path(), folder);
  }
  static void Relink(const fs::path& target, const fs::path& link) {
    fs::create_symlink(target, link.string() + ".new");
    fs::rename(link.string() + ".new", link);
  }

  const TemporaryFolder root_;
  const fs::path model_ = root_ / "m";
};

TEST_F(FolderStamps, EveryWayToReplaceAFileIsNoticed) {
  const fs::path graph = model_ / "1/model.onnx";
  const fs::path data = model_ / "1/model.onnx.data";
  const std::vector<std::pair<const char*, std::function<void()>>> ways = {
      {"weights in place, of equal size", [&] { Write(data, "WEIGHTS"); }},
      {"weights in place, of equal size and time",
       [&] { KeepingTime(data, [&] { Write(data, "heavies"); }); }},
      {"the graph renamed into place, of equal size and time",
       [&] {
         KeepingTime(graph, [&] {
           Write(root_ / "aside", "GRAPH");
           fs::rename(root_ / "aside", graph);
         });
       }},
      {"a link to another file of equal size",
       [&] { Relink(root_ / "blobs/b", model_ / "labels"); }},
      {"a file behind a link", [&] { Write(root_ / "blobs/b", "six"); }},
      {"a version that is a link to another folder",
       [&] { Relink(root_ / "releases/2", model_ / "2"); }},
      {"a file in a folder behind a link",
       [&] { Write(root_ / "releases/2/model.onnx", "third"); }},
      {"a new file", [&] { Write(model_ / "config.pbtxt", ""); }},
      {"a file that is gone", [&] { fs::remove(data); }},
      {"the folder is another one",
       [&] {
         fs::rename(model_, root_ / "old");
         fs::copy(root_ / "old", model_, fs::copy_options::recursive);
       }},
  };
  FolderStamp stamp = FolderStamp::Of(model_, Now());
  for (const auto& [name, change] : ways) {
    EXPECT_TRUE(stamp.StillHolds(model_, Now())) << "before " << name;
    change();
    EXPECT_FALSE(stamp.StillHolds(model_, Now())) << name;
    stamp = FolderStamp::Of(model_, Now());
  }
}

TEST_F(FolderStamps, AFolderThatIsReadOrHasALinkToItselfIsAsItWas) {
  fs::create_directory_symlink(model_, model_ / "1/loop");
  FolderStamp stamp = FolderStamp::Of(model_, Now());
  std::ifstream(model_ / "1/model.onnx").get();
  EXPECT_TRUE(stamp.StillHolds(model_, Now()));
  EXPECT_FALSE(FolderStamp().StillHolds(model_, Now()));
}

// NFS before version 4 on some servers, and FAT: two writes within a second look like one.
TEST_F(FolderStamps, WhereTimesAreCoarseContentsTell) {
  constexpr std::int64_t kThen = 1'700'000'000 * kSecond;
  const FactsOf coarse = [](const fs::path& path, bool follow) {
    return FileFacts{SystemFacts(path, follow).size, kThen, kThen};
  };
  FolderStamp stamp = FolderStamp::Of(model_, kThen + kSecond / 2, coarse);
  EXPECT_TRUE(stamp.StillHolds(model_, kThen + kSecond, coarse));
  Write(model_ / "1/model.onnx.data", "WEIGHTS");
  EXPECT_FALSE(stamp.StillHolds(model_, kThen + kSecond, coarse));

  // However late the next look is, once. From then on times tell again, and nothing is read.
  stamp = FolderStamp::Of(model_, kThen + kSecond, coarse);
  Write(model_ / "1/model.onnx.data", "heavies");
  EXPECT_FALSE(stamp.StillHolds(model_, kThen + 900 * kSecond, coarse));
  stamp = FolderStamp::Of(model_, kThen + kSecond, coarse);
  EXPECT_TRUE(stamp.StillHolds(model_, kThen + 900 * kSecond, coarse));
  Write(model_ / "1/model.onnx.data", "WEIGHTS");
  EXPECT_TRUE(stamp.StillHolds(model_, kThen + 901 * kSecond, coarse)) << "it reads at every look";
}

}  // namespace
}  // namespace tactus
