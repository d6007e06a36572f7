// A config.pbtxt, or a ModelConfig as JSON (the first byte is '{'): read, given its meaning, and
// written back.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "server/kserve/config_fields.h"
#include "server/kserve/declared_config.h"
#include "server/kserve/model_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tactus;
  std::string text(reinterpret_cast<const char*>(data), size);
  const auto config = text.starts_with('{') ? DeclaredConfig::FromJson(text)
                                            : DeclaredConfig::FromText(text, "config.pbtxt");
  if (!config) {
    CHECK(!config.error().message.empty(), "a mistake has a text");
    return 0;
  }
  (void)ServedVersions(*config, {1, 2, 3});
  const auto spec = SpecOf(*config, "/models/m", 1);
  if (!spec) return 0;
  CHECK(!spec->exits.empty(), "a model has an exit");
  const auto json = ModelConfigJson(*spec);
  CHECK(json.has_value(), "what was accepted can be written");
  return 0;
}
