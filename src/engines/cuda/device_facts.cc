#include "engines/cuda/device_facts.h"

#include <array>
#include <cstddef>

#include <fmt/format.h>

namespace tactus {
namespace {

// As nvidia-smi writes it.
std::string UuidText(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

}  // namespace

Expected<DeviceFacts> ReadFacts(const Driver& driver, int ordinal,
                                const std::function<int(const std::string&)>& power_limit) {
  int count = 0;
  if (Status ok = Ask(driver, driver.device_count, &count); !ok) {
    return std::unexpected(ok.error());
  }
  if (ordinal < 0 || ordinal >= count) {
    return NotFound(
        fmt::format("there is no device cuda:{}: the driver sees {}, counted from 0; "
                    "`nvidia-smi -L` lists them, and CUDA_VISIBLE_DEVICES may hide some",
                    ordinal, count));
  }
  DeviceFacts facts;
  CUdevice device = 0;
  std::array<char, 256> name{};
  CUuuid uuid{};
  std::size_t memory = 0;
  int major = 0;
  int minor = 0;
  const auto attribute = [&](CUdevice_attribute which, int& value) {
    return Ask(driver, driver.device_attribute, &value, which, device);
  };
  Status ok = Ask(driver, driver.device, &device, ordinal);
  const int room = static_cast<int>(name.size()) - 1;
  if (ok) ok = Ask(driver, driver.device_name, name.data(), room, device);
  if (ok) ok = Ask(driver, driver.device_uuid, &uuid, device);
  if (ok) ok = Ask(driver, driver.device_memory, &memory, device);
  if (ok) ok = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, major);
  if (ok) ok = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, minor);
  if (ok) ok = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, facts.multiprocessors);
  if (ok) ok = Ask(driver, driver.driver_version, &facts.driver);
  if (!ok) {
    return Fail(ok.error().code, fmt::format("device cuda:{}: {}", ordinal, ok.error().message));
  }
  facts.name = name.data();
  facts.uuid = UuidText(uuid);
  facts.capability = 10 * major + minor;
  facts.memory_bytes = memory;
  facts.power_limit_watts = power_limit(facts.uuid);
  return facts;
}

}  // namespace tactus
