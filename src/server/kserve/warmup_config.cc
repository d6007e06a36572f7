#include "server/kserve/warmup_config.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "server/kserve/config_fields.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

// Null: the configuration declares no such input, or none at all.
const inference::ModelInput* Declared(const inference::ModelConfig& config,
                                      const std::string& name) {
  const auto found = std::find_if(config.input().begin(), config.input().end(),
                                  [&](const auto& input) { return input.name() == name; });
  return found == config.input().end() ? nullptr : &*found;
}

}  // namespace

Expected<std::vector<StatedSample>> ReadSample(const DeclaredConfig& config,
                                               const fs::path& folder) {
  const inference::ModelConfig& message = config.message();
  std::vector<StatedSample> samples;
  if (message.model_warmup().empty()) return samples;
  const auto& entry = message.model_warmup(0).inputs();
  // In an order that does not change.
  const std::map<std::string, inference::ModelWarmup::Input> inputs(entry.begin(), entry.end());
  for (const auto& [name, stated] : inputs) {
    const auto wrong = [&, &name = name](std::string_view why) {
      return config.Wrong("model_warmup", fmt::format("input '{}': {}", name, why), 0);
    };
    const inference::ModelInput* const declared = Declared(message, name);
    if (declared == nullptr && !message.input().empty()) {
      return wrong("the model declares no such input");
    }
    if (declared != nullptr && declared->data_type() != stated.data_type()) {
      return wrong("data_type is not that of the model's input");
    }
    if (declared == nullptr && !FromWire(stated.data_type())) return wrong("data_type is missing");
    StatedSample sample{.input = name, .dims = {}, .file = {}};
    for (const std::int64_t dim : stated.dims()) {
      if (dim < 1) return wrong(fmt::format("dims: {} is no size", dim));
      sample.dims.push_back(dim);
    }
    if (sample.dims.empty()) return wrong("dims is missing");
    if (stated.input_data_type_case() == inference::ModelWarmup::Input::kInputDataFile) {
      if (!IsPlainFileName(stated.input_data_file())) {
        return wrong(fmt::format("'{}' is not a file of the model's folder 'warmup'",
                                 stated.input_data_file()));
      }
      sample.data = StatedSample::Data::kFile;
      sample.file = folder / "warmup" / stated.input_data_file();
    } else if (stated.random_data()) {
      sample.data = StatedSample::Data::kNoise;
    } else if (!stated.zero_data()) {
      return wrong("zero_data, random_data or input_data_file is missing");
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace tactus
