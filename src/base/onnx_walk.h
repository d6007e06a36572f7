// Walks the messages of an ONNX file and reads nothing of the fields between: weights that lie in
// the graph itself may be large.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <string>

#include "base/onnx_messages.h"

namespace tactus {

class OnnxWalk {
 public:
  // A field of bytes that holds no message that OnnxChild names.
  struct Field {
    OnnxMessage of = OnnxMessage::kOther;
    std::uint64_t number = 0;
    std::uint64_t length = 0;
    bool inner = false;  // of a branch, a function or a constant, not of the main graph itself
  };
  using Visit = std::function<void(const Field&)>;

  explicit OnnxWalk(std::istream& file) : file_(file) {}

  // Each such field of the model that ends at `end`, up to where the file is none.
  void Run(std::uint64_t end, const Visit& visit) {
    Run(OnnxMessage::kModel, end, false, visit, 0);
  }
  // Of the field that is visited.
  std::string Text(const Field& field);

 private:
  void Run(OnnxMessage message, std::uint64_t end, bool inner, const Visit& visit, int depth);
  std::uint64_t At();
  std::uint64_t Varint();

  std::istream& file_;
  std::uint64_t fields_ = 0;
};

}  // namespace tactus
