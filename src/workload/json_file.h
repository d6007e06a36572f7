// JSON documents as files: what profiles and kept predictors share.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/expected.h"

namespace tactus {

// kInvalidArgument names `where`, the line and column, and ends with `remedy`.
Expected<nlohmann::json> ParseJson(std::string_view text, std::string_view where,
                                   std::string_view remedy);

// Written aside and renamed: a reader, or a run that was cut off, never sees half of it. `what` is
// the document in the error, "this profile".
Status WriteWhole(std::string_view text, const std::filesystem::path& path, std::string_view what);

}  // namespace tactus
