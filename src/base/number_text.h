// Numbers in messages of modules that know no formatting library.
#pragma once

#include <string>

namespace tactus {

// With up to six decimals, and no zeros at the end: "33.3", "40".
inline std::string NumberText(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// A part of a whole as text: "33.3 %".
inline std::string PercentText(double part) { return NumberText(100 * part) + " %"; }

}  // namespace tactus
