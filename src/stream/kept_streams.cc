#include "stream/kept_streams.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/whole_file.h"
#include "stream/stream_config.h"

namespace tactus {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kWhat = "file of streams";
constexpr unsigned kOwnersAlone = 0600;

Status Check(const std::string& name, const std::string& description) {
  if (!IsStreamName(name)) {
    return InvalidArgument("its name has other than 1 to 64 letters, digits, '.', '_' and '-'");
  }
  const auto config = ParseStreamConfig(description);
  return config ? Status() : std::unexpected(config.error());
}

}  // namespace

Expected<KeptStreams::Descriptions> KeptStreams::Parse(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || json.size() != 1 || !json.contains("streams") ||
      !json["streams"].is_object()) {
    return InvalidArgument(R"(must be {"streams": {"NAME": {"source": ..., "model": ...}}})");
  }
  Descriptions all;
  for (const auto& [name, stream] : json["streams"].items()) {
    std::string description = stream.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (Status fine = Check(name, description); !fine) {
      return InvalidArgument(fmt::format("stream '{:.64}': {}", name, fine.error().message));
    }
    all[name] = std::move(description);
  }
  return all;
}

Expected<KeptStreams> KeptStreams::Read(const std::filesystem::path& path) {
  KeptStreams kept(path);
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return kept;
  const auto text = ReadWhole(path, kWhat);
  if (!text) return std::unexpected(text.error());
  auto all = Parse(*text);
  if (!all) return InvalidArgument(fmt::format("{}: {}", path.string(), all.error().message));
  kept.all_ = *std::move(all);
  return kept;
}

Status KeptStreams::Write(Descriptions all) {
  Json streams = Json::object();
  for (const auto& [name, description] : all) streams[name] = Json::parse(description);
  const std::string text = Json{{"streams", std::move(streams)}}.dump(2) + "\n";
  if (Status written = WriteWhole(text, path_, kWhat, kOwnersAlone); !written) return written;
  all_ = std::move(all);
  return {};
}

Status KeptStreams::Put(const std::string& name, std::string_view description) {
  Descriptions all = all_;
  all[name] = description;
  return Write(std::move(all));
}

Status KeptStreams::Erase(const std::string& name) {
  if (!all_.contains(name)) return {};
  Descriptions all = all_;
  all.erase(name);
  return Write(std::move(all));
}

}  // namespace tactus
