// A ModelConfig together with where each of its fields stood, so that a mistake found later, when
// the fields are given their meaning, still names its line.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <google/protobuf/text_format.h>

#include "base/expected.h"
#include "model_config.pb.h"

namespace tactus {

class DeclaredConfig {
 public:
  // Protobuf text. `file` stands in the errors. Unknown fields are errors.
  static Expected<DeclaredConfig> FromText(std::string text, std::string file);
  // proto3 JSON, as the load call sends it: no lines, errors name the field only.
  static Expected<DeclaredConfig> FromJson(std::string_view json);
  // What stands in `folder`'s config.pbtxt, or in `override_json` unless that is empty; nothing
  // declared where there is no such file.
  static Expected<DeclaredConfig> FromFolder(const std::filesystem::path& folder,
                                             const std::string& override_json);
  // Nothing was declared.
  static DeclaredConfig Empty(std::string file);

  const inference::ModelConfig& message() const { return message_; }

  // "file:line:column: field: why". `index` counts the entries of a repeated field.
  std::unexpected<Error> Wrong(std::string_view field, std::string_view why, int index = -1) const;
  // "file:line:column", or "file" where it does not stand there.
  std::string PlaceOfField(std::string_view field, int index = -1) const;
  // Where a step of ensemble_scheduling stands: "file:line:column", or "file".
  std::string PlaceOfStep(int step) const;
  // Where an `input` or `output` stands.
  std::string PlaceOfTensor(std::string_view field, int index) const;
  // A tensor that a map of a step names twice: the second would replace the first.
  struct DoubledLink {
    int step = 0;        // of ensemble_scheduling
    std::string map;     // "input_map" or "output_map"
    std::string tensor;  // the model's
    std::string place;   // "file:line:column", or "file"
  };
  // The first of them. (JSON with one is not a ModelConfig.)
  const std::optional<DoubledLink>& doubled() const { return doubled_; }
  // For an entry of the `parameters` map.
  std::unexpected<Error> WrongParameter(std::string_view key, std::string_view why) const;

 private:
  // While the message has its maps as they are written.
  void FindDoubled();

  inference::ModelConfig message_;
  std::string file_;
  std::string text_;                                                     // empty for JSON
  std::unique_ptr<google::protobuf::TextFormat::ParseInfoTree> places_;  // null for JSON
  std::optional<DoubledLink> doubled_;
};

}  // namespace tactus
