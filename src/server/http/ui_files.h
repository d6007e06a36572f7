// The live page: HTML, a script and a style, which the build takes from server/ui. They hold no
// data.
#pragma once

#include <string_view>

namespace tactus {

struct UiFile {
  std::string_view name;  // "index.html"
  std::string_view type;
  std::string_view text;
};

// Null for a name that is none of them.
const UiFile* FindUiFile(std::string_view name);

}  // namespace tactus
