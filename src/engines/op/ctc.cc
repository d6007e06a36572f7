#include "engines/op/ctc.h"

#include <cstddef>
#include <sstream>
#include <utility>

#include "base/whole_file.h"

namespace tactus::op {
namespace {

constexpr std::size_t kLargestAlphabet = 4 << 20;

}  // namespace

DecodedText DecodeCtc(std::span<const float> steps, std::size_t classes,
                      std::span<const std::string> alphabet) {
  DecodedText decoded;
  double sum = 0;
  int kept = 0;
  std::size_t before = 0;
  for (std::size_t at = 0; at + classes <= steps.size(); at += classes) {
    std::size_t best = 0;
    for (std::size_t k = 1; k < classes; ++k) {
      if (steps[at + k] > steps[at + best]) best = k;
    }
    if (best != 0 && best != before) {
      decoded.text += alphabet[best - 1];
      sum += double{steps[at + best]};
      ++kept;
    }
    before = best;
  }
  if (kept > 0) decoded.score = static_cast<float>(sum / kept);
  return decoded;
}

Expected<std::vector<std::string>> ReadAlphabet(const std::filesystem::path& file) {
  auto text = ReadRegular(file, kLargestAlphabet);
  if (!text) return std::unexpected(std::move(text.error()));
  std::istringstream stream(*std::move(text));
  std::vector<std::string> alphabet;
  for (std::string line; std::getline(stream, line);) alphabet.push_back(line);
  alphabet.emplace_back(" ");
  return alphabet;
}

}  // namespace tactus::op
