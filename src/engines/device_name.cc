#include "engines/device_name.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace tactus {
namespace {

constexpr std::string_view kProcessor = "cpu";
constexpr std::string_view kCuda = "cuda:";
constexpr const char* kValues = "cuda:0, or several as cuda:0,cuda:1";

}  // namespace

Expected<std::vector<int>> ParseDevices(std::string_view text) {
  std::vector<int> devices;
  if (text.empty() || text == kProcessor) return devices;
  const std::string_view all = text;
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(','));
    if (name == kProcessor) {
      return InvalidArgument(fmt::format(
          "'{}' has cpu in a list; give either cpu, which is the default, or devices: {}", all,
          kValues));
    }
    text.remove_prefix(std::min(text.size(), name.size() + 1));
    int number = -1;
    const bool cuda = name.starts_with(kCuda);
    const char* const end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + (cuda ? kCuda.size() : 0), end, number);
    if (!cuda || read.ec != std::errc() || read.ptr != end || number < 0) {
      return InvalidArgument(fmt::format(
          "'{}' is not a device; give cpu, which is the default, or devices: {}", name, kValues));
    }
    if (std::ranges::find(devices, number) != devices.end()) {
      return InvalidArgument(fmt::format("device {} is named twice", name));
    }
    devices.push_back(number);
  }
  return devices;
}

}  // namespace tactus
