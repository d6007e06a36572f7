#include "engines/op/crop.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "engines/op/resize.h"

namespace tactus::op {

Crops Crop(const ImageView& image, std::span<const float> boxes, const CropOptions& options) {
  const std::size_t count = std::min(boxes.size() / 4, static_cast<std::size_t>(options.most));
  const std::size_t row_bytes = static_cast<std::size_t>(options.width) * 3;
  const std::size_t each = static_cast<std::size_t>(options.height) * row_bytes;
  Crops crops;
  crops.pixels.resize(count * each);
  for (std::size_t i = 0; i < count; ++i) {
    const float* box = &boxes[i * 4];
    double w = (double{box[2]} - box[0]) * (1 + 2 * options.margin);
    double h = (double{box[3]} - box[1]) * (1 + 2 * options.margin);
    if (options.extend) {
      const double wide = std::max(w, h * options.width / options.height);
      h = std::max(h, w * options.height / options.width);
      w = wide;
    }
    const double cx = (double{box[0]} + box[2]) / 2;
    const double cy = (double{box[1]} + box[3]) / 2;
    const int left = ToWhole(std::floor(cx - w / 2), 0, image.width - 1);
    const int top = ToWhole(std::floor(cy - h / 2), 0, image.height - 1);
    const int right = ToWhole(std::ceil(cx + w / 2), left + 1, image.width);
    const int bottom = ToWhole(std::ceil(cy + h / 2), top + 1, image.height);
    const ImageView part = image.Part(left, top, right - left, bottom - top);
    Resize(part, options.height, options.width, crops.pixels.data() + i * each, row_bytes);
    const Frame scale = ResizeFrame(part, options.height, options.width);
    crops.frames.push_back(
        {static_cast<float>(left), static_cast<float>(top), scale.scale_x, scale.scale_y});
  }
  return crops;
}

}  // namespace tactus::op
