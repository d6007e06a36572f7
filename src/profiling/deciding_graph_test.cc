// Else a classifier whose constants come first would be tried as if it gave no labels.
#include "profiling/deciding_graph.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

// A field of onnx.proto that holds bytes.
std::string Field(int number, const std::string& bytes) {
  std::string text(1, static_cast<char>(number << 3 | 2));
  if (number >= 16)
    text = {static_cast<char>((number << 3 | 2) % 128 | 128), static_cast<char>(number >> 4)};
  for (std::size_t size = bytes.size();; size /= 128) {
    text += static_cast<char>(size % 128 | (size >= 128 ? 128 : 0));
    if (size < 128) break;
  }
  return text + bytes;
}

std::string Node(const std::string& type, const std::string& attribute = "") {
  return Field(1, Field(4, type) + (attribute.empty() ? "" : Field(5, attribute)));
}

bool Decides(const std::string& model) {
  const TemporaryFolder folder;
  ModelSpec spec;
  spec.exits = {{"1", folder / "model.onnx", 0}};
  std::ofstream(folder / "model.onnx", std::ios::binary) << model;
  return MayDecide(spec);
}

TEST(DecidingGraph, OperatorsAreFoundBehindAnyWeights) {
  const std::string version("\x08\x0a", 2);  // a number in front
  const std::string weights(std::size_t{9} << 20, '\x01');
  const std::string constant = Node("Constant", Field(5, Field(9, weights)));
  for (const char* type : {"ArgMax", "Relu"}) {
    const bool decides = std::string(type) == "ArgMax";
    const std::string node = Node(type);
    EXPECT_EQ(Decides(version + Field(7, node)), decides);
    EXPECT_EQ(Decides(version + Field(7, constant + node)), decides);
    EXPECT_EQ(Decides(Field(7, Field(5, Field(9, weights)) + node)), decides) << "initializers";
    EXPECT_EQ(Decides(Field(7, constant + Node("If", Field(6, node)))), decides) << "a branch";
    const std::string function = Field(25, Field(7, node.substr(node.find(type) - 2)));
    EXPECT_EQ(Decides(Field(7, constant) + function), decides) << "a function behind the graph";
  }
  EXPECT_FALSE(Decides(Field(7, constant) + "\xff\xff ArgMax")) << "cut off";
  EXPECT_FALSE(Decides(""));
}

}  // namespace
}  // namespace tactus
