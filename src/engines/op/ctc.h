// Connectionist temporal classification, the greedy way (Graves et al., 2006): the likeliest class
// of each step, repetitions joined, blanks left out.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"

namespace tactus::op {

struct DecodedText {
  std::string text;  // UTF-8
  float score = 0;   // mean probability of the steps that became a character; 0 without any
};

// `steps` is FP32 [count, classes]. Class 0 is the blank, class k stands for alphabet[k - 1];
// alphabet has classes - 1 entries.
DecodedText DecodeCtc(std::span<const float> steps, std::size_t classes,
                      std::span<const std::string> alphabet);

// One character a line, and a blank behind the last, as PP-OCR's alphabets are meant. kNotFound, or
// kInvalidArgument for a file of more than 4 MiB.
Expected<std::vector<std::string>> ReadAlphabet(const std::filesystem::path& file);

}  // namespace tactus::op
