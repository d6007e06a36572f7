// Lines of text in a map of text probability: the post-processing of differentiable binarization
// (Liao et al., 2020) as PP-OCR has it (PaddlePaddle/PaddleOCR, Apache-2.0).
#pragma once

#include <span>
#include <vector>

#include "engines/op/image.h"

namespace tactus::op {

struct DbOptions {
  double threshold = 0.3;      // a pixel above it is text
  double box_threshold = 0.6;  // least mean over a box
  double unclip = 1.5;         // boxes grow by this times area / circumference
  double least = 3;            // of a box's shorter side before it grows, in pixels of the map
  int most = 64;               // boxes, the best
  int candidates = 1000;       // areas of text that are looked at, from the top
};

struct TextBoxes {
  std::vector<float> quads;  // n times four corners x y, clockwise from the top left, in the source
  std::vector<float> scores;  // n
};

// `map` is FP32 [height, width], `frame` places the source in it. Boxes come in reading order: from
// the top, those of one line (10 pixels of the source) from the left.
TextBoxes FindTextBoxes(std::span<const float> map, int height, int width, const Frame& frame,
                        const DbOptions& options);

}  // namespace tactus::op
