// Steps of a pipeline as one node describes them to another that is to run them as one: the
// configuration of an ensemble, as in its folder, so both speak what users write and what is
// checked and fuzzed already (ensemble_config.h).
#pragma once

#include <string>
#include <string_view>

#include "base/expected.h"
#include "pipeline/ensemble_declaration.h"

namespace tactus {

// As JSON. InvalidArgument where it would not be read as it is (a step's name has a comma).
Expected<std::string> DescribeSteps(const EnsembleDeclaration& steps);

// InvalidArgument says what is wrong: longer than kMostDescription, no ensemble's configuration,
// one that batches.
Expected<EnsembleDeclaration> ReadSteps(std::string_view described);

inline constexpr std::size_t kMostDescription = 64 << 10;

}  // namespace tactus
