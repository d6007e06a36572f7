// Any bytes as a profile: parsed or refused, never a crash; what is parsed makes tables.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "workload/profile_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto profile = tactus::ParseProfile(text, "fuzz.json");
  if (!profile) return 0;
  (void)tactus::Warnings(*profile);
  std::vector<tactus::Model> models;
  for (const tactus::ProfiledModel& measured : profile->models) {
    tactus::Model& model = models.emplace_back();
    model.name = measured.name;
    model.max_batch = measured.max_batch;
    for (const tactus::ProfiledExit& exit : measured.exits) model.exits.push_back({exit.name});
  }
  // A profile that was accepted covers itself.
  if (!tactus::MakeTable(*profile, models, {})) std::abort();
  return 0;
}
