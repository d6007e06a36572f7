#include "engines/op/samples.h"

#include <cstddef>
#include <utility>

#include "base/check.h"

namespace tactus::op {
namespace {

Tensor Numbers(Shape shape, std::vector<float> values) {
  return Own(DataType::kFp32, std::move(shape), std::move(values));
}

std::size_t Count(const Shape& shape) {
  const auto count = ElementCount(shape);
  CHECK(count.has_value(), "samples are small");
  return static_cast<std::size_t>(*count);
}

}  // namespace

Tensor SamplePictures(int count, int height, int width) {
  const Shape shape{count, height, width, 3};
  std::vector<std::uint8_t> pixels(Count(shape));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 7);
  return Own(DataType::kUint8, shape, std::move(pixels));
}

Tensor SamplePicture(int height, int width) {
  Tensor picture = SamplePictures(1, height, width);
  picture.shape.erase(picture.shape.begin());
  return picture;
}

Tensor SampleNumbers(Shape shape, float value) {
  const std::size_t count = Count(shape);
  return Numbers(std::move(shape), std::vector<float>(count, value));
}

Tensor SampleFrame() { return Numbers({4}, {0, 0, 1, 1}); }

Tensor SampleFrames(int count) {
  std::vector<float> frames;
  for (int i = 0; i < count; ++i) frames.insert(frames.end(), {0, 0, 1, 1});
  return Numbers({count, 4}, std::move(frames));
}

Tensor SampleBoxes() {
  std::vector<float> boxes;
  for (int i = 0; i < kSampleObjects; ++i) {
    const float x = 50.0f + 140.0f * static_cast<float>(i);
    boxes.insert(boxes.end(), {x, 200, x + 40, 290});
  }
  return Numbers({kSampleObjects, 4}, std::move(boxes));
}

Tensor SampleQuads() {
  std::vector<float> quads;
  for (int i = 0; i < kSampleObjects; ++i) {
    const float y = 40.0f + 90.0f * static_cast<float>(i);
    quads.insert(quads.end(), {100, y, 300, y + 8, 300, y + 40, 100, y + 32});
  }
  return Numbers({kSampleObjects, 4, 2}, std::move(quads));
}

Tensor SampleDetections(int channels, int side) {
  Tensor map = SampleNumbers({1, channels, side, side}, -6);
  std::vector<float> values(map.As<float>().begin(), map.As<float>().end());
  const std::size_t cells = static_cast<std::size_t>(side) * static_cast<std::size_t>(side);
  for (std::size_t i = 0; i < kSampleObjects; ++i) {
    values[i * cells / kSampleObjects + static_cast<std::size_t>(side) / 2] = 1;
  }
  return Numbers(map.shape, std::move(values));
}

Tensor SampleTextMap(int height, int width) {
  std::vector<float> map(static_cast<std::size_t>(height) * static_cast<std::size_t>(width), 0);
  for (int i = 0; i < kSampleObjects; ++i) {
    const int top = (2 * i + 1) * height / (2 * kSampleObjects + 1);
    for (int y = top; y < top + height / 30 + 4 && y < height; ++y) {
      for (int x = width / 8; x < width / 2; ++x) {
        map[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
            static_cast<std::size_t>(x)] = 0.9f;
      }
    }
  }
  return Numbers({1, 1, height, width}, std::move(map));
}

}  // namespace tactus::op
