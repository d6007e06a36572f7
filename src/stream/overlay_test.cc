#include "stream/overlay.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

namespace tactus {
namespace {

AnswerTensor Numbers(const char* name, Shape shape, const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {name, DataType::kFp32, std::move(shape), std::move(bytes)};
}

RgbPicture Black() { return {40, 30, std::vector<std::uint8_t>(40 * 30 * 3)}; }

// The picture as rows of '.' and '#'.
std::vector<std::string> Drawn(const std::vector<AnswerTensor>& outputs) {
  RgbPicture picture = Black();
  DrawAnswer(picture, outputs);
  std::vector<std::string> rows(30, std::string(40, '.'));
  for (std::size_t i = 0; i < 40 * 30; ++i) {
    if (picture.pixels[i * 3] + picture.pixels[i * 3 + 1] > 0) rows[i / 40][i % 40] = '#';
  }
  return rows;
}

// Without this, boxes could be drawn with x and y, or corner and size, mixed up.
TEST(Overlay, ABoxIsAnOutlineFromLeftTopToRightBottom) {
  const auto rows = Drawn({Numbers("boxes", {1, 4}, {5, 10, 20, 12})});
  for (int y = 0; y < 30; ++y) {
    std::string expected(40, '.');
    if (y == 10 || y == 12) expected.replace(5, 16, 16, '#');
    if (y == 11) expected[5] = expected[20] = '#';
    EXPECT_EQ(rows[static_cast<std::size_t>(y)], expected) << y;
  }
}

// Without this, a model's wild numbers could be written beside the picture, or take for ever.
TEST(Overlay, LeavesAloneWhatIsNoPlaceInThePicture) {
  const float nan = std::nanf("");
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<AnswerTensor> wild = {
      Numbers("boxes", {2, 4}, {nan, 0, 10, 10, -inf, 0, inf, 1e30F}),
      Numbers("points", {1, 17, 3}, std::vector<float>(51, 1e20F)),
      Numbers("quads", {1, 4, 2}, {1e9F, 1, 2, 2, 3, 3, nan, nan}),
      Numbers("points", {1, std::int64_t{1} << 62, 3}, {1, 2, 3}),  // whose bytes no number holds
      Numbers("boxes", {3, 4}, {1, 2}),  // fewer bytes than the shape says
      Numbers("boxes", {1, 5}, {1, 2, 3, 4, 5}),
      Numbers("scores", {4}, {1, 2, 3, 4}),
      {"boxes", DataType::kInt32, {1, 4}, std::string(16, '\1')}};
  for (const AnswerTensor& tensor : wild) {
    RgbPicture picture = Black();
    DrawAnswer(picture, {tensor});
    EXPECT_EQ(picture.pixels, Black().pixels) << tensor.name;
  }
  // What is half outside is cut at the edge.
  const auto rows = Drawn({Numbers("boxes", {1, 4}, {30, 20, 60, 50})});
  EXPECT_EQ(rows[20], std::string(30, '.') + std::string(10, '#'));
  EXPECT_EQ(rows[25], std::string(30, '.') + "#" + std::string(9, '.'));
}

// Without this, parts of a body that nobody sees would be drawn at the picture's corner.
TEST(Overlay, DrawsPointsThatWereSeen) {
  std::vector<float> points(51, 0);
  points[5 * 3] = 10, points[5 * 3 + 1] = 10, points[5 * 3 + 2] = 0.9F;  // left shoulder
  points[6 * 3] = 20, points[6 * 3 + 1] = 10, points[6 * 3 + 2] = 0.8F;  // right shoulder
  points[7 * 3] = 10, points[7 * 3 + 1] = 25, points[7 * 3 + 2] = 0.1F;  // an elbow, hidden
  const auto rows = Drawn({Numbers("points", {1, 17, 3}, points)});
  EXPECT_EQ(rows[10], std::string(9, '.') + std::string(13, '#') + std::string(18, '.'));
  EXPECT_EQ(rows[25], std::string(40, '.'));
  EXPECT_EQ(rows[0], std::string(40, '.'));
}

}  // namespace
}  // namespace tactus
