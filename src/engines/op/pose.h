// PoseNet's decoding of one person in each picture (tfjs-models/pose-detection, Apache-2.0): for
// each part of the body the cell where its heat is greatest, moved by that cell's offset.
#pragma once

#include <span>
#include <vector>

#include "engines/op/image.h"

namespace tactus::op {

struct PoseMaps {
  std::span<const float> heat;     // FP32 [n, height, width, parts], logits
  std::span<const float> offsets;  // FP32 [n, height, width, 2 * parts]: y of all parts, then x
  int count = 0;
  int height = 0;
  int width = 0;
  int parts = 17;
};

// x, y in pixels of the source and the score of each part: FP32 [n, parts, 3]. `frames` are the
// pictures' n frames; `stride` is in pixels of the network's input.
std::vector<float> DecodePose(const PoseMaps& maps, std::span<const Frame> frames, int stride);

}  // namespace tactus::op
