// Inputs to measure a model with, from its configuration, and from files that this names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "core/engine.h"

namespace tactus {

// How the values of a row are drawn.
struct SampleDraw {
  enum class Noise {
    kNormal,
    kPositive,   // the absolute value of such noise
    kNegative,   // that below zero
    kFraction,   // between 0 and 1
    kAscending,  // kPositive, sorted along the last dimension: corners of boxes, intervals
    kWhole,      // 0, 1 or 2
    kWide,       // of any size from 0.001 to ten millions, integers up to `integers`
  };
  std::uint64_t seed = 1;
  double scale = 1;  // of the noise
  // Above 0: rows are to be unlike each other. Integers lie in [0, integers], or as far as their
  // type goes; with kNegative those that have a sign in [-integers, 0]. Strings are such numbers,
  // and what the folder states has its shape alone from there. 0: zeros, empty strings.
  int integers = 0;
  Noise noise = Noise::kNormal;
  std::span<const std::string> present = {};  // optional inputs that are not left out
};

// What two rows have in common.
enum class Likeness {
  kHalf,    // a random half of their numbers; their other floats are near each other
  kAllBut,  // all but one of their numbers, or two
  kNear,    // floats differ by a hundredth at most, one integer
};

// Whether the model's folder states the shape of a row of this input.
bool StatesShape(const ModelSpec& spec, const TensorSpec& input);

// One row. An input is what ModelSpec::sample says of it. One that is not there is made up: normal
// noise where the type is a floating-point one, zeros (empty strings) elsewhere, so that no index
// is out of range. A dimension that the model leaves open is then what its parameter
// "profile_shape.<input>" says ("3,320,320", the batch dimension left out), else what
// ModelSpec::found_shapes has, else 1. An optional input is left out where neither of the first two
// is stated, unless the draw has it.
class SampleRow {
 public:
  static Expected<SampleRow> Make(const ModelSpec& spec, const SampleDraw& draw);
  static Expected<SampleRow> Make(const ModelSpec& spec, std::uint64_t seed) {
    return Make(spec, SampleDraw{.seed = seed});
  }
  // What the engine gives as a sample of the model that it has loaded; Make where it gives none, or
  // the model's folder states one.
  static Expected<SampleRow> Make(const ModelSpec& spec, std::uint64_t seed, const Engine& engine,
                                  ModelHandle handle);

  SampleRow() = default;
  SampleRow(SampleRow&&) = default;
  SampleRow& operator=(SampleRow&&) = default;

  // It becomes like `other`, a row of the same model; strings stay as they are.
  void ShareWith(const SampleRow& other, const ModelSpec& spec, std::uint64_t seed,
                 Likeness likeness);

  // Good as long as this row.
  RowInputs inputs() const { return {views_, nullptr}; }

 private:
  static Expected<SampleRow> Draw(const ModelSpec& spec, const SampleDraw& draw);
  void View();

  std::vector<Shape> shapes_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<bool> absent_;
  std::vector<TensorView> views_;  // into the first two, which moves do not disturb
};

}  // namespace tactus
