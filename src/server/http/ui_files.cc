#include "server/http/ui_files.h"

#include <algorithm>
#include <array>

namespace tactus {

namespace ui {
extern const std::string_view index_html, app_js, style_css;
}

const UiFile* FindUiFile(std::string_view name) {
  static const std::array<UiFile, 3> files{
      {{"index.html", "text/html; charset=utf-8", ui::index_html},
       {"app.js", "text/javascript; charset=utf-8", ui::app_js},
       {"style.css", "text/css; charset=utf-8", ui::style_css}}};
  const auto found = std::ranges::find(files, name, &UiFile::name);
  return found == files.end() ? nullptr : &*found;
}

}  // namespace tactus
