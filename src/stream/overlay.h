// Draws what a pipeline found into the picture it was found in.
#pragma once

#include <vector>

#include "stream/frame_sink.h"
#include "stream/jpeg.h"

namespace tactus {

// By the outputs' names and shapes, all FP32 in pixels of the frame:
//   boxes  [n, 4]     left, top, right, bottom
//   quads  [n, 4, 2]  corners x, y in order
//   points [n, k, 3]  x, y, score: those with a score of 0.3 or more; of 17 (a body's parts in the
//                     order of COCO) the limbs too
// Each of the n in a colour of its own. Other outputs are left alone, and so are numbers that are
// none or lie outside.
void DrawAnswer(RgbPicture& picture, const std::vector<AnswerTensor>& outputs);

}  // namespace tactus
