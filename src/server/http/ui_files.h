// The live page: HTML, a script and a style, which the build takes from server/ui. They hold no
// data.
#pragma once

#include <string>
#include <string_view>

#include "server/http/http_message.h"

namespace tactus {

struct UiFile {
  std::string_view name;  // "index.html"
  std::string_view type;
  std::string_view text;
};

// Null for a name that is none of them.
const UiFile* FindUiFile(std::string_view name);

// The file, with the policy that allows it nothing but the server's own; without a name the way to
// the first.
HttpResponse UiResponse(const std::string& name);

}  // namespace tactus
