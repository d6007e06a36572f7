#include "server/http/ui_files.h"

#include <algorithm>
#include <array>
#include <span>

namespace tactus {

namespace ui {
extern const std::string_view index_html, app_js, lanes_js, style_css;
}

const UiFile* FindUiFile(std::string_view name) {
  static const std::array<UiFile, 4> files{
      {{"index.html", "text/html; charset=utf-8", ui::index_html},
       {"app.js", "text/javascript; charset=utf-8", ui::app_js},
       {"lanes.js", "text/javascript; charset=utf-8", ui::lanes_js},
       {"style.css", "text/css; charset=utf-8", ui::style_css}}};
  const auto found = std::ranges::find(files, name, &UiFile::name);
  return found == files.end() ? nullptr : &*found;
}

HttpResponse UiResponse(const std::string& name) {
  HttpResponse response;
  if (name.empty()) {
    response.status = 302;
    response.fields = "Location: /ui/index.html\r\n";
    return response;
  }
  const UiFile* const file = FindUiFile(name);
  if (file == nullptr) return ErrorResponse(404, "Not Found");
  response.content_type = file->type;
  response.fields =
      "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
      "connect-src 'self'; img-src 'self' blob:; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\n"
      "Referrer-Policy: no-referrer\r\nCache-Control: no-cache\r\n";
  response.parts = {std::as_bytes(std::span(file->text))};
  return response;
}

}  // namespace tactus
