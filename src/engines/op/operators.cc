// The operators' arguments and ports, around the pure functions that do their work.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "engines/op/crop.h"
#include "engines/op/ctc.h"
#include "engines/op/db_boxes.h"
#include "engines/op/decode_jpeg.h"
#include "engines/op/jpegs.h"
#include "engines/op/nanodet.h"
#include "engines/op/normalize.h"
#include "engines/op/operator.h"
#include "engines/op/pose.h"
#include "engines/op/resize.h"
#include "engines/op/samples.h"
#include "engines/op/text_crop.h"
#include "engines/op/top_k.h"

namespace tactus::op {
namespace {

using Results = Expected<std::vector<Tensor>>;
using Inputs = std::span<const Tensor>;

constexpr int kLongestSide = 8192;
constexpr std::int64_t kMostCropped = std::int64_t{1} << 26;  // pixels of all crops together
constexpr int kMostItems = 1024;

int Dim(const Tensor& tensor, std::size_t i) { return static_cast<int>(tensor.shape[i]); }

// Null bytes and an error for pictures without pixels.
Expected<ImageView> PictureOf(const Tensor& tensor) {
  if (tensor.shape[0] < 1 || tensor.shape[1] < 1) return InvalidArgument("a picture has no pixels");
  if (tensor.shape[0] > 1 << 20 || tensor.shape[1] > 1 << 20) {
    return InvalidArgument(fmt::format("a picture of {} is too large", ToString(tensor.shape)));
  }
  return ImageView{tensor.As<std::uint8_t>().data(), Dim(tensor, 0), Dim(tensor, 1),
                   static_cast<std::size_t>(tensor.shape[1]) * 3};
}

Frame FrameOf(const Tensor& tensor) {
  const auto f = tensor.As<float>();
  return {f[0], f[1], f[2], f[3]};
}

Tensor TensorOf(const Frame& f) {
  return Own(DataType::kFp32, {4}, std::vector<float>{f.left, f.top, f.scale_x, f.scale_y});
}

Tensor TensorOf(Image image) {
  return Own(DataType::kUint8, {image.height, image.width, 3}, std::move(image.pixels));
}

TensorSpec Pictures() { return {"pixels", DataType::kUint8, {-1, -1, 3}}; }

Operator MakeDecodeJpeg(Arguments& arguments) {
  const bool strings = arguments.OneOf("from", {"uint8", "string"}) == "string";
  const std::int64_t most = arguments.Whole("most_pixels", 1 << 24, 1, 1 << 28);
  Operator op;
  op.inputs = {{"jpeg", strings ? DataType::kBytes : DataType::kUint8, {strings ? 1 : -1}}};
  op.outputs = {Pictures()};
  op.run = [strings, most](Inputs in) -> Results {
    // A string's bytes follow its length, which the front end has checked.
    auto decoded = DecodeJpeg(in[0].bytes.subspan(strings ? 4 : 0), most);
    if (!decoded) return std::unexpected(std::move(decoded.error()));
    Tensor pixels = TensorOf(std::move(decoded->image));
    pixels.cut_jpegs = decoded->cut ? 1 : 0;
    return std::vector{std::move(pixels)};
  };
  op.sample = [strings] {
    std::vector<std::byte> jpeg = SampleJpeg(kSampleHeight, kSampleWidth);
    const auto size = static_cast<std::uint32_t>(jpeg.size());
    if (!strings) return std::vector{Own(DataType::kUint8, {size}, std::move(jpeg))};
    std::array<std::byte, 4> length;
    std::memcpy(length.data(), &size, sizeof size);
    jpeg.insert(jpeg.begin(), length.begin(), length.end());
    return std::vector{Own(DataType::kBytes, {1}, std::move(jpeg))};
  };
  return op;
}

std::vector<Tensor> SampleOfPicture() { return {SamplePicture(kSampleHeight, kSampleWidth)}; }

Operator MakeResize(Arguments& arguments) {
  const int height = arguments.Needed("height", 1, kLongestSide);
  const int width = arguments.Needed("width", 1, kLongestSide);
  Operator op;
  op.inputs = {Pictures()};
  op.outputs = {{"resized", DataType::kUint8, {height, width, 3}}, {"frame", DataType::kFp32, {4}}};
  op.run = [height, width](Inputs in) -> Results {
    const auto picture = PictureOf(in[0]);
    if (!picture) return std::unexpected(picture.error());
    return std::vector{TensorOf(Resize(*picture, height, width)),
                       TensorOf(ResizeFrame(*picture, height, width))};
  };
  op.sample = SampleOfPicture;
  return op;
}

Operator MakeLetterbox(Arguments& arguments) {
  const int height = arguments.Needed("height", 1, kLongestSide);
  const int width = arguments.Needed("width", 1, kLongestSide);
  const auto fill = static_cast<std::uint8_t>(arguments.Whole("fill", 114, 0, 255));
  Operator op;
  op.inputs = {Pictures()};
  op.outputs = {{"boxed", DataType::kUint8, {height, width, 3}}, {"frame", DataType::kFp32, {4}}};
  op.run = [height, width, fill](Inputs in) -> Results {
    const auto picture = PictureOf(in[0]);
    if (!picture) return std::unexpected(picture.error());
    Letterboxed boxed = Letterbox(*picture, height, width, fill);
    return std::vector{TensorOf(std::move(boxed.image)), TensorOf(boxed.frame)};
  };
  op.sample = SampleOfPicture;
  return op;
}

Operator MakeNormalize(Arguments& arguments) {
  NormalizeOptions options;
  std::ranges::copy(arguments.Numbers("mean", {0, 0, 0}, -1000, 1000), options.mean.begin());
  std::ranges::copy(arguments.Numbers("std", {1, 1, 1}, 1e-6, 1000), options.std.begin());
  options.bgr = arguments.OneOf("channels", {"rgb", "bgr"}) == "bgr";
  options.nhwc = arguments.OneOf("layout", {"nchw", "nhwc"}) == "nhwc";
  const bool many = arguments.OneOf("pictures", {"one", "many"}) == "many";
  const bool lines = arguments.Has("widths");
  if (lines && !many) arguments.Wrong("widths", "only with pictures = many");
  Operator op;
  op.inputs = {{"pixels", DataType::kUint8, many ? Shape{-1, -1, -1, 3} : Shape{-1, -1, 3}}};
  if (lines) op.inputs.push_back({"widths", DataType::kInt32, {-1, 1}});
  const std::int64_t count = many ? -1 : 1;
  op.outputs = {{"tensor", DataType::kFp32,
                 options.nhwc ? Shape{count, -1, -1, 3} : Shape{count, 3, -1, -1}}};
  const std::size_t rows = many ? 1 : 0;  // the dimension of a picture's height
  op.kept = {{0, rows, 0, options.nhwc ? 1u : 2u}, {0, rows + 1, 0, options.nhwc ? 2u : 3u}};
  op.run = [options, many](Inputs in) -> Results {
    const std::size_t first = many ? 1 : 0;
    const int n = many ? Dim(in[0], 0) : 1;
    const int height = Dim(in[0], first);
    const int width = Dim(in[0], first + 1);
    std::span<const std::int32_t> widths;
    if (in.size() > 1) widths = in[1].As<std::int32_t>();
    if (in.size() > 1 && static_cast<int>(widths.size()) != n) {
      return InvalidArgument(fmt::format("{} widths for {} pictures", widths.size(), n));
    }
    std::vector<float> numbers(in[0].bytes.size());
    Normalize(options, in[0].As<std::uint8_t>(), n, height, width, widths, numbers);
    Shape shape = options.nhwc ? Shape{n, height, width, 3} : Shape{n, 3, height, width};
    return std::vector{Own(DataType::kFp32, std::move(shape), std::move(numbers))};
  };
  op.sample = [many, lines] {
    std::vector<Tensor> in{many ? SamplePictures(kSampleObjects, 224, 224)
                                : SamplePicture(416, 416)};
    if (lines) {
      in.push_back(Own(DataType::kInt32, {kSampleObjects, 1},
                       std::vector<std::int32_t>(kSampleObjects, 200)));
    }
    return in;
  };
  return op;
}

Operator MakeCrop(Arguments& arguments) {
  CropOptions options;
  options.height = arguments.Needed("height", 1, kLongestSide);
  options.width = arguments.Needed("width", 1, kLongestSide);
  options.margin = arguments.Number("margin", 0, 0, 10);
  options.extend = arguments.OneOf("fit", {"stretch", "extend"}) == "extend";
  options.most = arguments.Whole("most", 64, 1, kMostItems);
  if (std::int64_t{options.height} * options.width * options.most > kMostCropped) {
    arguments.Wrong("most", fmt::format("that many crops are more than {} pixels", kMostCropped));
  }
  Operator op;
  op.inputs = {{"boxes", DataType::kFp32, {-1, 4}}, Pictures()};
  op.outputs = {{"crops", DataType::kUint8, {-1, options.height, options.width, 3}},
                {"frames", DataType::kFp32, {-1, 4}}};
  op.run = [options](Inputs in) -> Results {
    const auto picture = PictureOf(in[1]);
    if (!picture) return std::unexpected(picture.error());
    Crops crops = Crop(*picture, in[0].As<float>(), options);
    const auto n = static_cast<std::int64_t>(crops.frames.size());
    std::vector<float> frames;
    for (const Frame& f : crops.frames) {
      frames.insert(frames.end(), {f.left, f.top, f.scale_x, f.scale_y});
    }
    return std::vector{
        Own(DataType::kUint8, {n, options.height, options.width, 3}, std::move(crops.pixels)),
        Own(DataType::kFp32, {n, 4}, std::move(frames))};
  };
  op.sample = [] { return std::vector{SampleBoxes(), SamplePicture(kSampleHeight, kSampleWidth)}; };
  return op;
}

Operator MakeNanodet(Arguments& arguments) {
  NanodetOptions options;
  options.classes = arguments.Whole("class_count", 80, 1, 4096);
  options.threshold = arguments.Number("threshold", 0.4, 1e-6, 1);
  options.iou = arguments.Number("iou", 0.5, 0, 1);
  options.keep = arguments.Wholes("keep", {}, 0, options.classes - 1);
  options.most = arguments.Whole("most", 100, 1, kMostItems);
  options.candidates = arguments.Whole("candidates", 1000, 1, 10'000);
  const std::vector<int> strides = arguments.Wholes("strides", {8, 16, 32}, 1, 1024);
  Operator op;
  for (const int stride : strides) {
    op.inputs.push_back({fmt::format("map{}", stride), DataType::kFp32, {1, -1, -1, -1}});
  }
  op.inputs.push_back({"frame", DataType::kFp32, {4}});
  op.outputs = {{"boxes", DataType::kFp32, {-1, 4}},
                {"scores", DataType::kFp32, {-1}},
                {"classes", DataType::kInt32, {-1}}};
  op.run = [options, strides](Inputs in) -> Results {
    std::vector<NanodetMap> maps;
    for (std::size_t i = 0; i < strides.size(); ++i) {
      maps.push_back({in[i].As<float>(), Dim(in[i], 1), Dim(in[i], 2), Dim(in[i], 3), strides[i]});
      if (maps.back().logits.empty()) return InvalidArgument("a map is empty");
    }
    auto found = DecodeNanodet(maps, FrameOf(in.back()), options);
    if (!found) return std::unexpected(std::move(found.error()));
    const auto n = static_cast<std::int64_t>(found->scores.size());
    return std::vector{Own(DataType::kFp32, {n, 4}, std::move(found->boxes)),
                       Own(DataType::kFp32, {n}, std::move(found->scores)),
                       Own(DataType::kInt32, {n}, std::move(found->classes))};
  };
  op.sample = [strides, classes = options.classes] {
    std::vector<Tensor> in;
    for (const int stride : strides) {
      in.push_back(SampleDetections(classes + 44, std::max(1, 416 / stride)));
    }
    in.push_back(SampleFrame());
    return in;
  };
  return op;
}

Operator MakeDbBoxes(Arguments& arguments) {
  DbOptions options;
  options.threshold = arguments.Number("threshold", 0.3, 0, 1);
  options.box_threshold = arguments.Number("box_threshold", 0.6, 0, 1);
  options.unclip = arguments.Number("unclip", 1.5, 0, 10);
  options.least = arguments.Number("least", 3, 1, 1000);
  options.most = arguments.Whole("most", 64, 1, kMostItems);
  options.candidates = arguments.Whole("candidates", 1000, 1, 10'000);
  Operator op;
  op.inputs = {{"map", DataType::kFp32, {1, 1, -1, -1}}, {"frame", DataType::kFp32, {4}}};
  op.outputs = {{"quads", DataType::kFp32, {-1, 4, 2}}, {"scores", DataType::kFp32, {-1}}};
  op.run = [options](Inputs in) -> Results {
    if (in[0].bytes.empty()) return InvalidArgument("the map is empty");
    TextBoxes boxes =
        FindTextBoxes(in[0].As<float>(), Dim(in[0], 2), Dim(in[0], 3), FrameOf(in[1]), options);
    const auto n = static_cast<std::int64_t>(boxes.scores.size());
    return std::vector{Own(DataType::kFp32, {n, 4, 2}, std::move(boxes.quads)),
                       Own(DataType::kFp32, {n}, std::move(boxes.scores))};
  };
  op.sample = [] { return std::vector{SampleTextMap(480, 480), SampleFrame()}; };
  return op;
}

Operator MakeTextCrop(Arguments& arguments) {
  TextCropOptions options;
  options.height = arguments.Whole("height", 48, 1, 1024);
  options.width = arguments.Whole("width", 320, 1, kLongestSide);
  options.most = arguments.Whole("most", 64, 1, kMostItems);
  if (std::int64_t{options.height} * options.width * options.most > kMostCropped) {
    arguments.Wrong("most", fmt::format("that many lines are more than {} pixels", kMostCropped));
  }
  Operator op;
  op.inputs = {{"quads", DataType::kFp32, {-1, 4, 2}}, Pictures()};
  op.outputs = {{"lines", DataType::kUint8, {-1, options.height, options.width, 3}},
                {"widths", DataType::kInt32, {-1, 1}}};
  op.run = [options](Inputs in) -> Results {
    const auto picture = PictureOf(in[1]);
    if (!picture) return std::unexpected(picture.error());
    TextLines lines = CropText(*picture, in[0].As<float>(), options);
    const auto n = static_cast<std::int64_t>(lines.widths.size());
    return std::vector{
        Own(DataType::kUint8, {n, options.height, options.width, 3}, std::move(lines.pixels)),
        Own(DataType::kInt32, {n, 1}, std::move(lines.widths))};
  };
  op.sample = [] { return std::vector{SampleQuads(), SamplePicture(kSampleHeight, kSampleWidth)}; };
  return op;
}

Operator MakeTurnUpright(Arguments& arguments) {
  const double threshold = arguments.Number("threshold", 0.9, 0, 1);
  Operator op;
  op.inputs = {{"lines", DataType::kFp32, {-1, -1, -1, -1}},
               {"widths", DataType::kInt32, {-1, 1}},
               {"directions", DataType::kFp32, {-1, 2}}};
  op.outputs = {{"upright", DataType::kFp32, {-1, -1, -1, -1}}};
  for (std::size_t d = 0; d < 4; ++d) op.kept.push_back({0, d, 0, d});
  op.run = [threshold](Inputs in) -> Results {
    if (in[1].shape[0] != in[0].shape[0] || in[2].shape[0] != in[0].shape[0]) {
      return InvalidArgument(fmt::format("{} lines, {} widths and {} directions", in[0].shape[0],
                                         in[1].shape[0], in[2].shape[0]));
    }
    const auto from = in[0].As<float>();
    std::vector<float> lines(from.begin(), from.end());
    TurnUpright(lines, Dim(in[0], 1), Dim(in[0], 2), Dim(in[0], 3), in[1].As<std::int32_t>(),
                in[2].As<float>(), threshold);
    return std::vector{Own(DataType::kFp32, in[0].shape, std::move(lines))};
  };
  op.sample = [] {
    return std::vector{SampleNumbers({1, 3, 48, 320}, 0),
                       Own(DataType::kInt32, {1, 1}, std::vector<std::int32_t>{320}),
                       Own(DataType::kFp32, {1, 2}, std::vector<float>{0, 1})};
  };
  return op;
}

Operator MakePose(Arguments& arguments) {
  const int stride = arguments.Whole("stride", 16, 1, 1024);
  const int parts = arguments.Whole("parts", 17, 1, 256);
  Operator op;
  op.inputs = {{"heat", DataType::kFp32, {-1, -1, -1, parts}},
               {"offsets", DataType::kFp32, {-1, -1, -1, 2 * parts}},
               {"frames", DataType::kFp32, {-1, 4}}};
  op.outputs = {{"points", DataType::kFp32, {-1, parts, 3}}};
  op.run = [stride, parts](Inputs in) -> Results {
    const PoseMaps maps{in[0].As<float>(), in[1].As<float>(), Dim(in[0], 0),
                        Dim(in[0], 1),     Dim(in[0], 2),     parts};
    const bool fit = std::equal(in[0].shape.begin(), in[0].shape.end() - 1, in[1].shape.begin());
    if (!fit || in[2].shape[0] != in[0].shape[0]) {
      return InvalidArgument(fmt::format("heat {}, offsets {} and frames {} do not belong together",
                                         ToString(in[0].shape), ToString(in[1].shape),
                                         ToString(in[2].shape)));
    }
    if (maps.count > 0 && maps.heat.empty()) return InvalidArgument("the heat has no cells");
    const auto numbers = in[2].As<float>();
    std::vector<Frame> frames;
    for (std::size_t i = 0; i + 4 <= numbers.size(); i += 4) {
      frames.push_back({numbers[i], numbers[i + 1], numbers[i + 2], numbers[i + 3]});
    }
    return std::vector{
        Own(DataType::kFp32, {maps.count, parts, 3}, DecodePose(maps, frames, stride))};
  };
  op.sample = [parts] {
    return std::vector{SampleNumbers({1, 13, 9, parts}, 0), SampleNumbers({1, 13, 9, 2 * parts}, 0),
                       SampleFrames(1)};
  };
  return op;
}

Operator MakeCtc(Arguments& arguments) {
  auto alphabet = std::make_shared<const std::vector<std::string>>();
  if (arguments.data_file().empty()) {
    arguments.Wrong("alphabet", "name the file of characters in default_model_filename");
  } else if (auto read = ReadAlphabet(arguments.data_file())) {
    alphabet = std::make_shared<const std::vector<std::string>>(*std::move(read));
  } else {
    arguments.Wrong("alphabet", read.error().message);
  }
  const auto classes = static_cast<std::int64_t>(alphabet->size()) + 1;
  Operator op;
  op.inputs = {{"steps", DataType::kFp32, {-1, -1, classes}}};
  op.outputs = {{"texts", DataType::kBytes, {-1, 1}}, {"scores", DataType::kFp32, {-1, 1}}};
  op.run = [alphabet](Inputs in) -> Results {
    const std::int64_t n = in[0].shape[0];
    const auto steps = in[0].As<float>();
    std::vector<std::byte> texts;
    std::vector<float> scores;
    const std::size_t each = n > 0 ? steps.size() / static_cast<std::size_t>(n) : 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      const DecodedText one =
          DecodeCtc(steps.subspan(i * each, each), alphabet->size() + 1, *alphabet);
      for (std::size_t k = 0; k < 4; ++k) {
        texts.push_back(static_cast<std::byte>(one.text.size() >> (8 * k) & 0xff));
      }
      const auto bytes = std::as_bytes(std::span(one.text));
      texts.insert(texts.end(), bytes.begin(), bytes.end());
      scores.push_back(one.score);
    }
    return std::vector{Own(DataType::kBytes, {n, 1}, std::move(texts)),
                       Own(DataType::kFp32, {n, 1}, std::move(scores))};
  };
  op.sample = [classes] { return std::vector{SampleNumbers({1, 40, classes}, 0)}; };
  return op;
}

Operator MakeTopK(Arguments& arguments) {
  const int k = arguments.Whole("k", 5, 1, kMostItems);
  Operator op;
  op.inputs = {{"scores", DataType::kFp32, {-1, -1}}};
  op.outputs = {{"classes", DataType::kInt32, {-1, k}}, {"best", DataType::kFp32, {-1, k}}};
  op.run = [k](Inputs in) -> Results {
    const std::int64_t n = in[0].shape[0];
    if (in[0].shape[1] < k) {
      return InvalidArgument(fmt::format("the best {} of {} classes", k, in[0].shape[1]));
    }
    TopClasses top = TopK(in[0].As<float>(), static_cast<std::size_t>(in[0].shape[1]),
                          static_cast<std::size_t>(k));
    return std::vector{Own(DataType::kInt32, {n, k}, std::move(top.classes)),
                       Own(DataType::kFp32, {n, k}, std::move(top.scores))};
  };
  op.sample = [k] { return std::vector{SampleNumbers({1, std::max(1000, k)}, 0)}; };
  return op;
}

constexpr std::array<OperatorKind, 14> kKinds{{{"crop", MakeCrop},
                                               {"ctc", MakeCtc},
                                               {"db_boxes", MakeDbBoxes},
                                               {"decode_jpeg", MakeDecodeJpeg},
                                               {"decode_jpegs", MakeDecodeJpegs},
                                               {"encode_jpegs", MakeEncodeJpegs},
                                               {"letterbox", MakeLetterbox},
                                               {"nanodet", MakeNanodet},
                                               {"normalize", MakeNormalize},
                                               {"pose", MakePose},
                                               {"resize", MakeResize},
                                               {"text_crop", MakeTextCrop},
                                               {"top_k", MakeTopK},
                                               {"turn_upright", MakeTurnUpright}}};

}  // namespace

std::span<const OperatorKind> OperatorKinds() { return kKinds; }

const OperatorKind* FindOperator(std::string_view name) {
  const auto found = std::ranges::find(kKinds, name, &OperatorKind::name);
  return found == kKinds.end() ? nullptr : &*found;
}

}  // namespace tactus::op
