// Without these a manifest could lead a node to write outside its folder, or one model have two
// digests.
#include "cluster/models/manifest.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

void Put(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string FileLine(const std::string& path, const std::string& bytes = "x") {
  return "file " + DigestOf(bytes).text() + " " + std::to_string(bytes.size()) + " " + path + "\n";
}
std::string Text(const std::string& lines) { return "tactus model 1\n" + lines; }

TEST(Manifest, OfAFolderIsReadAsItIsWritten) {
  const TemporaryFolder root;
  Put(root / "m/config.pbtxt", "name: \"m\"");
  Put(root / "m/1/model.onnx", "weights");
  std::filesystem::create_directories(root / "m/2");
  std::filesystem::create_directory_symlink(root / "m/1", root / "m/3");
  const auto read = ReadManifest(root / "m");
  ASSERT_TRUE(read) << read.error().message;
  Manifest manifest = *read;
  manifest.needs = {{"other", DigestOf("o")}};
  EXPECT_EQ(manifest.bytes(), 9u + 2 * 7);
  EXPECT_EQ(manifest.folders, std::vector<std::string>{"2"}) << "versions may be empty";
  ASSERT_EQ(manifest.files.size(), 3u);
  EXPECT_EQ(manifest.files[0], (Manifest::File{"1/model.onnx", 7, DigestOf("weights")}));
  EXPECT_EQ(manifest.files[1].path, "3/model.onnx") << "links are followed";
  const auto again = ParseManifest(TextOf(manifest));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, manifest);
  EXPECT_EQ(Lacking(manifest, [](const Digest&) { return false; }).size(), 2u)
      << "the same bytes are asked for once";
  EXPECT_EQ(Lacking(manifest, [](const Digest& d) { return d == DigestOf("weights"); }).size(), 1u);

  Put(root / "m/config.pbtxt", "name: \"M\"");
  EXPECT_NE(TextOf(*ReadManifest(root / "m")), TextOf(*read));
}

TEST(Manifest, WhatIsNeitherFileNorFolderIsNamed) {
  const TemporaryFolder root;
  std::filesystem::create_directories(root / "m");
  std::filesystem::create_symlink("nowhere", root / "m/dangling");
  const auto read = ReadManifest(root / "m");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("dangling: neither a file nor a folder"));
}

// Each of these would write somewhere else, or not what it says.
TEST(Manifest, RefusesPathsThatLeaveTheModelsFolder) {
  for (const std::string path : {"..", "../x", "a/../../x", "/etc/passwd", "a//b", "a/", "./a",
                                 "a/./b", "", "a\tb", "a\x7f", "1/../config.pbtxt"}) {
    const auto file = ParseManifest(Text(FileLine(path)));
    ASSERT_FALSE(file) << path;
    EXPECT_THAT(file.error().message, HasSubstr("line 2 of a manifest")) << path;
    EXPECT_FALSE(ParseManifest(Text("folder " + path + "\n"))) << path;
  }
  for (const std::string name : {"..", ".hidden", "a/b", ""}) {
    EXPECT_FALSE(ParseManifest(Text("needs " + DigestOf("x").text() + " " + name + "\n"))) << name;
  }
  EXPECT_TRUE(ParseManifest(Text(FileLine(".gitkeep") + FileLine("1/a b..c"))));
}

TEST(Manifest, RefusesWhatNoFolderCanHoldAndEveryOtherText) {
  const std::string digest = DigestOf("x").text();
  for (const std::string& text : {
           std::string(),
           std::string("tactus model 2\n"),
           Text(FileLine("b") + FileLine("a")),
           Text(FileLine("a") + FileLine("a")),
           Text(FileLine("a") + FileLine("a/b")),
           Text("folder a\n" + FileLine("a")),
           Text("folder a/b\n" + FileLine("a")),
           Text("file " + digest + " 01 a\n"),
           Text("file " + digest + " -1 a\n"),
           Text("file " + digest + " 99999999999999999999 a\n"),
           Text("file " + digest + " 99999999999999999 a\n"),
           Text("file " + digest.substr(1) + " 1 a\n"),
           Text("link " + digest + " 1 a\n"),
           Text(FileLine("a") + "folder b\n"),
           Text(FileLine("a")) + "\n",
           Text(FileLine("a")).substr(0, 80),
       }) {
    EXPECT_FALSE(ParseManifest(text)) << text;
  }
  EXPECT_FALSE(ParseManifest(std::string(kMostManifest + 1, 'x')));
}

}  // namespace
}  // namespace tactus
