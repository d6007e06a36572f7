#include "server/kserve/declared_config.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/util/json_util.h>

#include "base/whole_file.h"
#include "server/kserve/json_keys.h"
#include "server/kserve/json_text.h"
#include "server/kserve/model_config_message.h"

namespace tactus {
namespace {

using google::protobuf::TextFormat;

// Keeps the first complaint; what follows it is usually its consequence.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (found_) return;
    found_ = true;
    line_ = line;
    column_ = column;
    message_ = message;
  }
  void AddWarning(int, int, const std::string&) override {}

  // Lines and columns count from 1 for people; the parser says -1 when it has no place.
  std::string Text(const std::string& file) const {
    if (line_ < 0) return fmt::format("{}: {}", file, message_);
    return fmt::format("{}:{}:{}: {}", file, line_ + 1, column_ + 1, message_);
  }

 private:
  bool found_ = false;
  int line_ = -1;
  int column_ = -1;
  std::string message_ = "not a model configuration";
};

// Configurations are not recursive: deeper nesting can only be an attack on the stack.
constexpr int kMostRecursion = 32;
constexpr std::size_t kLargestFile = 1 << 20;

std::string PlaceOf(std::string_view text, std::size_t position) {
  const std::string_view before = text.substr(0, position);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column = start == before.npos ? position + 1 : position - start;
  return fmt::format("{}:{}", line, column);
}

}  // namespace

Expected<DeclaredConfig> DeclaredConfig::FromText(std::string text, std::string file) {
  DeclaredConfig config = Empty(std::move(file));
  // Editors of some systems begin a file with this mark of its encoding.
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  config.text_ = std::move(text);
  config.places_ = std::make_unique<TextFormat::ParseInfoTree>();
  if (const std::size_t good = Utf8Prefix(config.text_); good < config.text_.size()) {
    return InvalidArgument(
        fmt::format("{}:{}: the text is not UTF-8", config.file_, PlaceOf(config.text_, good)));
  }
  FirstError errors;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(config.places_.get());
  parser.SetRecursionLimit(kMostRecursion);
  if (!parser.ParseFromString(config.text_, &config.message_)) {
    std::string why = errors.Text(config.file_);
    if (config.text_.find_first_not_of(" \t\r\n") == config.text_.find('{')) {
      why += " This looks like JSON; config.pbtxt is protobuf text: name: \"m\" max_batch_size: 8";
    }
    return InvalidArgument(std::move(why));
  }
  config.FindDoubled();
  // The text parser takes any bytes that a string's escapes spell; a message must be UTF-8.
  if (!inference::ModelConfig().ParseFromString(config.message_.SerializeAsString())) {
    return InvalidArgument(config.file_ + ": the escapes of a string do not spell UTF-8");
  }
  return config;
}

Expected<DeclaredConfig> DeclaredConfig::FromFolder(const std::filesystem::path& folder,
                                                    const std::string& override_json) {
  namespace fs = std::filesystem;
  if (!override_json.empty()) return FromJson(override_json);
  const fs::path file = folder / "config.pbtxt";
  std::error_code error;
  if (!fs::exists(file, error) && !error) return Empty(file.string());
  const auto text = ReadRegular(file, kLargestFile);
  if (!text) return InvalidArgument(text.error().message);
  if (text->empty()) return Empty(file.string());
  return FromText(*text, file.string());
}

Expected<DeclaredConfig> DeclaredConfig::FromJson(std::string_view json) {
  DeclaredConfig config = Empty("config");
  // Nor does the library live where memory runs out under a longer one.
  if (json.size() > kLargestFile) {
    return InvalidArgument(fmt::format("config: {} bytes, and a configuration has {} at most",
                                       json.size(), kLargestFile));
  }
  if (const auto key = KeyGivenTwice(json)) {
    return InvalidArgument(fmt::format("config: '{}' is given twice", *key));
  }
  const auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), &config.message_);
  if (!status.ok()) {
    return InvalidArgument("config: not a ModelConfig as JSON: " + status.message().ToString());
  }
  return config;
}

DeclaredConfig DeclaredConfig::Empty(std::string file) {
  DeclaredConfig config;
  config.file_ = std::move(file);
  return config;
}

std::unexpected<Error> DeclaredConfig::Wrong(std::string_view field, std::string_view why,
                                             int index) const {
  return InvalidArgument(fmt::format("{}: {}: {}", PlaceOfField(field, index), field, why));
}

std::string DeclaredConfig::PlaceOfField(std::string_view field, int index) const {
  const auto* of = inference::ModelConfig::descriptor()->FindFieldByName(std::string(field));
  if (places_ == nullptr || of == nullptr) return file_;
  const auto place = places_->GetLocation(of, of->is_repeated() ? index : -1);
  if (place.line < 0) return file_;
  return fmt::format("{}:{}:{}", file_, place.line + 1, place.column + 1);
}

std::string DeclaredConfig::PlaceOfTensor(std::string_view field, int index) const {
  const auto* of = inference::ModelConfig::descriptor()->FindFieldByName(std::string(field));
  if (places_ == nullptr || of == nullptr) return file_;
  auto place = places_->GetLocation(of, index);
  if (const TextFormat::ParseInfoTree* inside = places_->GetTreeForNested(of, index)) {
    const auto named = inside->GetLocation(of->message_type()->FindFieldByName("name"), -1);
    if (named.line >= 0) place = named;
  }
  if (place.line < 0) return file_;
  return fmt::format("{}:{}:{}", file_, place.line + 1, place.column + 1);
}

// As a list of entries, a map still has all that the text says.
void DeclaredConfig::FindDoubled() {
  const auto* scheduling =
      inference::ModelConfig::descriptor()->FindFieldByName("ensemble_scheduling");
  const auto* of_steps = inference::ModelEnsembling::descriptor()->FindFieldByName("step");
  const TextFormat::ParseInfoTree* tree = places_->GetTreeForNested(scheduling, -1);
  const auto& steps = message_.ensemble_scheduling().step();
  for (int s = 0; s < steps.size(); ++s) {
    for (const char* map : {"input_map", "output_map"}) {
      const auto* field = steps[s].GetDescriptor()->FindFieldByName(map);
      const auto* key = field->message_type()->FindFieldByName("key");
      const auto* reflection = steps[s].GetReflection();
      std::set<std::string> seen;
      for (int i = 0; i < reflection->FieldSize(steps[s], field); ++i) {
        const auto& entry = reflection->GetRepeatedMessage(steps[s], field, i);
        const std::string tensor = entry.GetReflection()->GetString(entry, key);
        if (seen.insert(tensor).second) continue;
        doubled_ = DoubledLink{s, map, tensor, PlaceOfStep(s)};
        const auto* inside = tree == nullptr ? nullptr : tree->GetTreeForNested(of_steps, s);
        if (inside == nullptr) return;
        const auto place = inside->GetLocation(field, i);
        if (place.line >= 0) {
          doubled_->place = fmt::format("{}:{}:{}", file_, place.line + 1, place.column + 1);
        }
        return;
      }
    }
  }
}

std::string DeclaredConfig::PlaceOfStep(int step) const {
  const auto* scheduling =
      inference::ModelConfig::descriptor()->FindFieldByName("ensemble_scheduling");
  if (places_ == nullptr) return file_;
  const TextFormat::ParseInfoTree* tree = places_->GetTreeForNested(scheduling, -1);
  if (tree == nullptr) return file_;
  const auto* steps = inference::ModelEnsembling::descriptor()->FindFieldByName("step");
  // In a list, all of its messages are where the list begins; their fields have places of their
  // own.
  auto place = tree->GetLocation(steps, step);
  if (const TextFormat::ParseInfoTree* inside = tree->GetTreeForNested(steps, step)) {
    const auto* model =
        inference::ModelEnsembling::Step::descriptor()->FindFieldByName("model_name");
    const auto named = inside->GetLocation(model, -1);
    if (named.line >= 0) place = named;
  }
  if (place.line < 0) return file_;
  return fmt::format("{}:{}:{}", file_, place.line + 1, place.column + 1);
}

std::unexpected<Error> DeclaredConfig::WrongParameter(std::string_view key,
                                                      std::string_view why) const {
  // The parser keeps no places for the entries of a map; the quoted key is where to look.
  for (const char quote : {'"', '\''}) {
    const std::size_t position = text_.find(fmt::format("{0}{1}{0}", quote, key));
    if (position == text_.npos) continue;
    return InvalidArgument(
        fmt::format("{}:{}: parameters[\"{}\"]: {}", file_, PlaceOf(text_, position), key, why));
  }
  return InvalidArgument(fmt::format("{}: parameters[\"{}\"]: {}", file_, key, why));
}

Expected<inference::ModelConfig> ParseConfigText(std::string_view text, const std::string& file) {
  auto config = DeclaredConfig::FromText(std::string(text), file);
  if (!config) return std::unexpected(config.error());
  return config->message();
}

Expected<inference::ModelConfig> ParseConfigJson(std::string_view json) {
  auto config = DeclaredConfig::FromJson(json);
  if (!config) return std::unexpected(config.error());
  return config->message();
}

}  // namespace tactus
