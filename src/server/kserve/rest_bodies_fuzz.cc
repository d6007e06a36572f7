// Bodies of the REST calls other than inference; the first byte says of which.
#include <cstdint>
#include <string_view>

#include "base/base64.h"
#include "base/check.h"
#include "server/kserve/rest_bodies.h"

namespace tactus {
namespace {

void Load(std::string_view body) {
  const auto given = ParseLoadRequest(body);
  if (!given) return CHECK(!given.error().message.empty(), "a mistake has a text");
  for (const auto& [path, bytes] : given->files) {
    CHECK(FromBase64(ToBase64(bytes)) == bytes, "Base64 loses nothing");
  }
}

void ChangeLogSettings(std::string_view body) {
  const auto values = ParseLogSettings(body);
  if (!values) return CHECK(!values.error().message.empty(), "a mistake has a text");
  int applied = 0;
  LogSettings settings({}, [&](const LogChoice&) { ++applied; });
  const LogValues before = settings.Get();
  const bool set = settings.Set(*values).has_value();
  CHECK(set || (applied == 0 && settings.Get() == before), "all of a request or none");
  CHECK(ParseLogSettings(LogSettingsJson(settings.Get())) == settings.Get(),
        "they read as written");
}

void ChangeTraceSettings(std::string_view body) {
  const auto values = ParseTraceSettings(body);
  if (!values) return CHECK(!values.error().message.empty(), "a mistake has a text");
  TraceSettings settings("traces.json");
  for (const char* const model : {"", "m"}) {
    const TraceValues before = settings.Get(model);
    const bool set = settings.Set(model, *values).has_value();
    CHECK(set || settings.Get(model) == before, "all of a request or none");
    CHECK(ParseTraceSettings(TraceSettingsJson(settings.Get(model))) == settings.Get(model),
          "they read as written");
    CHECK(settings.Set(model, settings.Get(model)).has_value(), "what is said may be set");
    (void)settings.Sample("m");
  }
}

}  // namespace
}  // namespace tactus

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tactus;
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (static_cast<std::uint8_t>(data[0] - '0') % 5) {
    case 0:
      Load(body);
      break;
    case 1:
      ChangeLogSettings(body);
      break;
    case 2:
      (void)ParseIndexRequest(body);
      break;
    case 3:
      (void)ParseUnloadRequest(body);
      break;
    default:
      ChangeTraceSettings(body);
  }
  return 0;
}
