// Tensors to measure operators with: a street's worth of pixels and objects.
#pragma once

#include <cstdint>
#include <vector>

#include "engines/op/tensor.h"

namespace tactus::op {

inline constexpr int kSampleHeight = 576;
inline constexpr int kSampleWidth = 768;
inline constexpr int kSampleObjects = 5;

// UINT8 [height, width, 3], or [count, height, width, 3].
Tensor SamplePicture(int height, int width);
Tensor SamplePictures(int count, int height, int width);
// FP32 of one value.
Tensor SampleNumbers(Shape shape, float value);
// FP32 [4] and [n, 4] frames that change nothing.
Tensor SampleFrame();
Tensor SampleFrames(int count);
// FP32 [n, 4]: x1 y1 x2 y2 in the sample picture, some 40 x 90 each.
Tensor SampleBoxes();
// FP32 [n, 4, 2]: lines of text in the sample picture, some 200 x 32 each.
Tensor SampleQuads();
// FP32 [1, channels, side, side]: logits of kSampleObjects boxes of class 0.
Tensor SampleDetections(int channels, int side);
// FP32 [1, 1, height, width]: kSampleObjects lines of text.
Tensor SampleTextMap(int height, int width);

}  // namespace tactus::op
