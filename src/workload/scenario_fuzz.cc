// Any bytes as a scenario: parsed or refused, never a crash; what is parsed can be overridden.
#include <cstdint>
#include <string_view>

#include "workload/scenario.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto scenario = tactus::ParseScenario(text, "fuzz.toml");
  if (!scenario) return 0;
  (void)tactus::Rates(*scenario);
  (void)tactus::ArrivalRates(*scenario);
  // The input's tail doubles as a setting.
  const std::size_t equals = text.rfind('=');
  const std::size_t line = text.rfind('\n', equals);
  if (equals != std::string_view::npos && line != std::string_view::npos && line < equals) {
    (void)tactus::Override(*scenario, text.substr(line + 1, equals - line - 1),
                           text.substr(equals + 1));
  }
  return 0;
}
