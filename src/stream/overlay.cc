#include "stream/overlay.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>

namespace tactus {
namespace {

using Colour = std::array<std::uint8_t, 3>;
constexpr std::array<Colour, 6> kColours = {
    {{255, 64, 64}, {64, 220, 64}, {80, 140, 255}, {255, 200, 0}, {255, 80, 255}, {0, 220, 220}}};
constexpr float kLeastScore = 0.3F;
// A body's limbs, as pairs of COCO's 17 points.
constexpr std::array<std::array<std::size_t, 2>, 12> kLimbs = {{{5, 6},
                                                                {5, 7},
                                                                {7, 9},
                                                                {6, 8},
                                                                {8, 10},
                                                                {5, 11},
                                                                {6, 12},
                                                                {11, 12},
                                                                {11, 13},
                                                                {13, 15},
                                                                {12, 14},
                                                                {14, 16}}};

struct Point {
  float x = 0;
  float y = 0;
};

class Canvas {
 public:
  explicit Canvas(RgbPicture& picture)
      : picture_(picture), width_(std::clamp(picture.width / 300, 1, 5)) {}

  // Near the picture: a line is never long, whatever a model says.
  bool Drawable(Point p) const {
    const auto near = [](float value, int size) {
      return value >= static_cast<float>(-size) && value <= static_cast<float>(2 * size);
    };
    return near(p.x, picture_.width) && near(p.y, picture_.height);
  }
  // Of drawable points.
  void Line(Point from, Point to, const Colour& colour) {
    const float steps = std::max({std::abs(to.x - from.x), std::abs(to.y - from.y), 1.0F});
    for (float i = 0; i <= steps; ++i) {
      const float share = i / steps;
      Square({from.x + (to.x - from.x) * share, from.y + (to.y - from.y) * share}, width_, colour);
    }
  }
  void Dot(Point at, const Colour& colour) { Square(at, width_ + 2, colour); }

 private:
  void Square(Point at, int size, const Colour& colour) {
    const int left = static_cast<int>(std::lround(at.x)) - size / 2;
    const int top = static_cast<int>(std::lround(at.y)) - size / 2;
    for (int y = std::max(top, 0); y < std::min(top + size, picture_.height); ++y) {
      for (int x = std::max(left, 0); x < std::min(left + size, picture_.width); ++x) {
        const auto pixel = (static_cast<std::size_t>(y) * static_cast<std::size_t>(picture_.width) +
                            static_cast<std::size_t>(x)) *
                           3;
        std::copy(colour.begin(), colour.end(),
                  picture_.pixels.begin() + static_cast<std::ptrdiff_t>(pixel));
      }
    }
  }

  RgbPicture& picture_;
  const int width_;  // of lines, in pixels
};

constexpr std::int64_t kMostNumbers = 1 << 20;  // along a dimension

// The n rows of an output of `rest` numbers each; nothing where it is no such output.
std::vector<std::vector<float>> Rows(const AnswerTensor& tensor,
                                     std::span<const std::int64_t> rest) {
  std::vector<std::vector<float>> rows;
  if (tensor.type != DataType::kFp32 || tensor.shape.size() != rest.size() + 1) return rows;
  std::size_t numbers = 1;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] >= 0 && tensor.shape[i + 1] != rest[i]) return rows;
    if (tensor.shape[i + 1] < 1 || tensor.shape[i + 1] > kMostNumbers) return rows;
    numbers *= static_cast<std::size_t>(tensor.shape[i + 1]);
  }
  const std::size_t bytes = numbers * sizeof(float);
  for (std::size_t at = 0; at + bytes <= tensor.bytes.size(); at += bytes) {
    rows.emplace_back(numbers);
    std::memcpy(rows.back().data(), tensor.bytes.data() + at, bytes);
  }
  return rows;
}

const Colour& ColourOf(std::size_t row) { return kColours[row % kColours.size()]; }

void Outline(Canvas& canvas, std::span<const Point> corners, const Colour& colour) {
  const auto drawable = [&](Point p) { return canvas.Drawable(p); };
  if (!std::ranges::all_of(corners, drawable)) return;
  for (std::size_t i = 0; i < corners.size(); ++i) {
    canvas.Line(corners[i], corners[(i + 1) % corners.size()], colour);
  }
}

void DrawBody(Canvas& canvas, const std::vector<float>& numbers, const Colour& colour) {
  const std::size_t count = numbers.size() / 3;
  const auto at = [&](std::size_t i) { return Point{numbers[i * 3], numbers[i * 3 + 1]}; };
  const auto seen = [&](std::size_t i) {
    return numbers[i * 3 + 2] >= kLeastScore && canvas.Drawable(at(i));
  };
  if (count == 17) {
    for (const auto& [from, to] : kLimbs) {
      if (seen(from) && seen(to)) canvas.Line(at(from), at(to), colour);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (seen(i)) canvas.Dot(at(i), colour);
  }
}

}  // namespace

void DrawAnswer(RgbPicture& picture, const std::vector<AnswerTensor>& outputs) {
  Canvas canvas(picture);
  constexpr std::int64_t kBox[] = {4}, kQuad[] = {4, 2}, kPoints[] = {-1, 3};
  for (const AnswerTensor& tensor : outputs) {
    std::size_t row = 0;
    if (tensor.name == "boxes") {
      for (const auto& box : Rows(tensor, kBox)) {
        const Point corners[] = {
            {box[0], box[1]}, {box[2], box[1]}, {box[2], box[3]}, {box[0], box[3]}};
        Outline(canvas, corners, ColourOf(row++));
      }
    } else if (tensor.name == "quads") {
      for (const auto& quad : Rows(tensor, kQuad)) {
        const Point corners[] = {
            {quad[0], quad[1]}, {quad[2], quad[3]}, {quad[4], quad[5]}, {quad[6], quad[7]}};
        Outline(canvas, corners, ColourOf(row++));
      }
    } else if (tensor.name == "points") {
      for (const auto& points : Rows(tensor, kPoints)) DrawBody(canvas, points, ColourOf(row++));
    }
  }
}

}  // namespace tactus
