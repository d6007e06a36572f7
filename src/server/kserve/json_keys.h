// Keys that an object of a JSON text has twice: which of the values counts, clients and servers
// would not agree on.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tactus {

// The first of them, in whichever object; nothing where there is none or the text is no JSON.
// protobuf takes maxBatchSize for max_batch_size, so the two are one key.
std::optional<std::string> KeyGivenTwice(std::string_view json);

}  // namespace tactus
