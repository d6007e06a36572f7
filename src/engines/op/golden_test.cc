// Without this, an operator could be subtly off and every box and letter behind it a little wrong:
// each is compared with what tests/pipelines/reference.py, written apart from it in numpy,
// computes. Bytes must be equal; numbers that pass through exp or a square root, to 1e-4 of a
// pixel.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/source_path_for_test.h"
#include "engines/op/chain.h"
#include "engines/op/ctc.h"

namespace tactus::op {
namespace {

constexpr float kNear = 1e-4f;

std::map<std::string, Tensor> ReadGolden() {
  std::map<std::string, Tensor> all;
  std::ifstream file(SourcePath("tests/data/operators.golden"), std::ios::binary);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, type, sizes;
    words >> name >> type >> sizes;
    Shape shape;
    std::istringstream dims(sizes);
    for (std::string dim; std::getline(dims, dim, ',');) shape.push_back(std::stoll(dim));
    const DataType data_type = *ParseDataType(type);
    std::vector<std::byte> bytes(static_cast<std::size_t>(*ElementCount(shape)) *
                                 ElementSize(data_type));
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    all[name] = Own(data_type, shape, std::move(bytes));
  }
  return all;
}

class Golden : public ::testing::Test {
 protected:
  const Tensor& At(const std::string& name) {
    const auto found = golden_.find(name);
    if (found == golden_.end()) throw std::runtime_error("no golden tensor " + name);
    return found->second;
  }

  // Runs a chain on the golden tensors that its inputs are named after, by `names`.
  std::vector<Tensor> Run(const std::map<std::string, std::string>& parameters,
                          const std::vector<std::string>& names,
                          const std::filesystem::path& data_file = {}) {
    ModelSpec spec;
    spec.name = "m";
    spec.parameters = parameters;
    spec.exits = {{"1", data_file, 0}};
    auto chain = Chain::Make(spec);
    EXPECT_TRUE(chain) << chain.error().message;
    if (!chain) return {};
    std::vector<Tensor> inputs;
    for (const std::string& name : names) inputs.push_back(At(name));
    auto results = chain->Run(inputs);
    EXPECT_TRUE(results) << results.error().message;
    return results ? *std::move(results) : std::vector<Tensor>{};
  }

  void ExpectSame(const Tensor& got, const std::string& name) {
    SCOPED_TRACE(name);
    const Tensor& want = At(name);
    ASSERT_EQ(got.type, want.type);
    ASSERT_EQ(got.shape, want.shape);
    EXPECT_EQ(std::memcmp(got.bytes.data(), want.bytes.data(), want.bytes.size()), 0);
  }

  void ExpectNear(const Tensor& got, const std::string& name) {
    SCOPED_TRACE(name);
    const Tensor& want = At(name);
    ASSERT_EQ(got.type, want.type);
    ASSERT_EQ(got.shape, want.shape);
    for (std::size_t i = 0; i < want.As<float>().size(); ++i) {
      ASSERT_NEAR(got.As<float>()[i], want.As<float>()[i], kNear) << "number " << i;
    }
  }

 private:
  std::map<std::string, Tensor> golden_ = ReadGolden();
};

TEST_F(Golden, DecodeJpegIsPillows) {
  const auto out = Run({{"op", "decode_jpeg"}}, {"jpeg"});
  ASSERT_EQ(out.size(), 1u);
  ASSERT_EQ(out[0].shape, At("jpeg_pixels").shape);
  const auto got = out[0].As<std::uint8_t>();
  const auto want = At("jpeg_pixels").As<std::uint8_t>();
  // Another version of libjpeg-turbo may round otherwise.
  for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1) << "byte " << i;
}

TEST_F(Golden, Resize) {
  for (const auto& [name, height, width] :
       {std::tuple{"smaller", "20", "31"}, std::tuple{"larger", "90", "120"}}) {
    const auto out =
        Run({{"op", "resize"}, {"resize.height", height}, {"resize.width", width}}, {"image"});
    ASSERT_EQ(out.size(), 2u);
    ExpectSame(out[0], std::string("resize_") + name);
    ExpectSame(out[1], std::string("resize_") + name + "_frame");
  }
}

TEST_F(Golden, Letterbox) {
  const auto out =
      Run({{"op", "letterbox"}, {"letterbox.height", "40"}, {"letterbox.width", "48"}}, {"image"});
  ASSERT_EQ(out.size(), 2u);
  ExpectSame(out[0], "letterbox");
  ExpectSame(out[1], "letterbox_frame");
}

TEST_F(Golden, NormalizeInBothLayoutsAndOrders) {
  const Tensor& image = At("image");
  std::vector<std::uint8_t> part;
  for (std::size_t y = 0; y < 9; ++y) {
    const auto row = image.As<std::uint8_t>().subspan(y * 83 * 3, 7 * 3);
    part.insert(part.end(), row.begin(), row.end());
  }
  for (const auto& [name, key, value] :
       {std::tuple{"normalize_bgr", "normalize.channels", "bgr"},
        std::tuple{"normalize_nhwc", "normalize.layout", "nhwc"}}) {
    ModelSpec spec;
    spec.parameters = {{"op", "normalize"},
                       {"normalize.mean", "0.485, 0.456, 0.406"},
                       {"normalize.std", "0.229,0.224,0.225"},
                       {key, value}};
    const auto chain = Chain::Make(spec);
    ASSERT_TRUE(chain) << chain.error().message;
    const auto out = chain->Run(std::vector{Own(DataType::kUint8, {9, 7, 3}, part)});
    ASSERT_TRUE(out) << out.error().message;
    ExpectSame((*out)[0], name);
  }
}

TEST_F(Golden, Crop) {
  for (const std::string fit : {"stretch", "extend"}) {
    const auto out = Run({{"op", "crop"},
                          {"crop.height", "16"},
                          {"crop.width", "12"},
                          {"crop.margin", "0.1"},
                          {"crop.fit", fit}},
                         {"boxes", "image"});
    ASSERT_EQ(out.size(), 2u);
    ExpectSame(out[0], "crop_" + fit);
    ExpectSame(out[1], "crop_" + fit + "_frames");
  }
}

TEST_F(Golden, Nanodet) {
  std::map<std::string, std::string> parameters{{"op", "nanodet"}, {"nanodet.strides", "8, 16"}};
  for (const std::string kept : {"all", "persons"}) {
    if (kept == "persons") parameters["nanodet.keep"] = "0";
    const auto out = Run(parameters, {"map8", "map16", "frame"});
    ASSERT_EQ(out.size(), 3u);
    ASSERT_GT(out[0].shape[0], kept == "all" ? 1 : 0);
    ExpectNear(out[0], "nanodet_" + kept + "_boxes");
    ExpectNear(out[1], "nanodet_" + kept + "_scores");
    ExpectSame(out[2], "nanodet_" + kept + "_classes");
  }
}

TEST_F(Golden, Pose) {
  const auto out = Run({{"op", "pose"}}, {"heat", "offsets", "frames"});
  ASSERT_EQ(out.size(), 1u);
  ExpectNear(out[0], "pose");
}

TEST_F(Golden, DbBoxes) {
  const auto out = Run({{"op", "db_boxes"}}, {"text_map", "text_frame"});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].shape, (Shape{3, 4, 2})) << "two turned lines and an upright one";
  ExpectNear(out[0], "db_quads");
  ExpectNear(out[1], "db_scores");
}

TEST_F(Golden, TextCropAndTurnUpright) {
  const auto out = Run({{"op", "text_crop, normalize, turn_upright"},
                        {"text_crop.height", "16"},
                        {"text_crop.width", "60"},
                        {"normalize.pictures", "many"},
                        {"normalize.widths", "widths"},
                        {"normalize.channels", "bgr"},
                        {"normalize.mean", "0.5,0.5,0.5"},
                        {"normalize.std", "0.5,0.5,0.5"}},
                       {"quads", "image", "directions"});
  ASSERT_EQ(out.size(), 1u);
  ExpectSame(out[0], "turn_upright");
  const auto lines =
      Run({{"op", "text_crop"}, {"text_crop.height", "16"}, {"text_crop.width", "60"}},
          {"quads", "image"});
  ASSERT_EQ(lines.size(), 2u);
  ExpectSame(lines[0], "text_crop");
  ExpectSame(lines[1], "text_crop_widths");
}

TEST_F(Golden, Ctc) {
  const std::vector<std::string> alphabet{"a", "b", "\u00e9", "\u6587", " "};
  const auto steps = At("steps").As<float>();
  std::string texts;
  for (std::size_t i = 0; i < 3; ++i) {
    const DecodedText one = DecodeCtc(steps.subspan(i * 14 * 6, 14 * 6), 6, alphabet);
    texts += (i > 0 ? "\n" : "") + one.text;
    EXPECT_NEAR(one.score, At("ctc_scores").As<float>()[i], kNear);
  }
  const auto want = At("ctc_texts").As<std::uint8_t>();
  EXPECT_EQ(texts, std::string(want.begin(), want.end()));
}

TEST_F(Golden, TopK) {
  const auto out = Run({{"op", "top_k"}, {"top_k.k", "4"}}, {"logits"});
  ASSERT_EQ(out.size(), 2u);
  ExpectSame(out[0], "top_classes");
  ExpectSame(out[1], "top_scores");
}

}  // namespace
}  // namespace tactus::op
