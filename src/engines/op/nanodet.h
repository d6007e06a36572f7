// NanoDet's post-processing (RangiLyu/nanodet, Apache-2.0): generalised focal loss. Each cell of a
// map has a logit for each class, and for each side of its box a distribution over whole multiples
// of the cell's stride, whose mean is the distance from the cell's centre to that side.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/expected.h"
#include "engines/op/image.h"

namespace tactus::op {

struct NanodetOptions {
  int classes = 80;
  double threshold = 0.4;  // least score, in (0, 1)
  double iou = 0.5;        // boxes of one class that share more are one object
  std::vector<int> keep;   // classes to report; empty: all
  int most = 100;          // objects
  int candidates = 1000;   // boxes that are compared with each other; the best
};

// FP32 [classes + 4 * bins, side_y, side_x].
struct NanodetMap {
  std::span<const float> logits;
  int channels = 0;
  int height = 0;
  int width = 0;
  int stride = 8;  // pixels of the network's input from one cell to the next
};

struct Detections {
  std::vector<float> boxes;           // n times x1 y1 x2 y2 in pixels of the source
  std::vector<float> scores;          // n, descending
  std::vector<std::int32_t> classes;  // n
};

// `frame` places the source in the network's input. kInvalidArgument for a map whose channels are
// not classes and four distributions of equal length.
Expected<Detections> DecodeNanodet(std::span<const NanodetMap> maps, const Frame& frame,
                                   const NanodetOptions& options);

}  // namespace tactus::op
