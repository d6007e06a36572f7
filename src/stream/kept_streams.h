// The streams of a server in a file, so that they are there again after a restart.
//
//   {"streams": {"gate": {"source": "rtsp://camera-1/stream", "model": "street", "fps": 10}}}
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace tactus {

// Not thread-safe.
class KeptStreams {
 public:
  // Descriptions by name, as ParseStreamConfig takes them.
  using Descriptions = std::map<std::string, std::string>;

  // None where there is no file yet. InvalidArgument with the stream and what is wrong in it.
  static Expected<KeptStreams> Read(const std::filesystem::path& path);
  // What a file with this text holds.
  static Expected<Descriptions> Parse(std::string_view text);

  const Descriptions& all() const { return all_; }
  // The file has it before these return; where it cannot be written, nothing has changed. Sources
  // may hold passwords: the file is its owner's alone.
  Status Put(const std::string& name, std::string_view description);
  Status Erase(const std::string& name);

 private:
  explicit KeptStreams(std::filesystem::path path) : path_(std::move(path)) {}
  Status Write(Descriptions all);

  std::filesystem::path path_;
  Descriptions all_;
};

}  // namespace tactus
