// Any bytes as a manifest: read or refused. What is read has that one text, and no path of it leads
// out of the model's folder.
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/check.h"
#include "cluster/models/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto manifest = tactus::ParseManifest(text);
  if (!manifest) {
    CHECK(!manifest.error().message.empty(), "a refusal says why");
    return 0;
  }
  CHECK(tactus::TextOf(*manifest) == text, "a manifest has one text");
  for (const auto& each : manifest->files) {
    const auto path = std::filesystem::path("/model") / each.path;
    CHECK(path.lexically_normal() == path && path.string().starts_with("/model/"),
          "a path stays in the model's folder");
  }
  for (const auto& each : manifest->needs) {
    CHECK(tactus::IsPlainName(each.name), "a need is one folder");
  }
  return 0;
}
