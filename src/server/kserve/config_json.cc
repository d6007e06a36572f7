// The configuration as JSON. Written from the message's description rather than by protobuf's own
// JSON printer, which turns 64-bit numbers into strings: clients read `dims` as numbers.

#include <span>
#include <string>

#include <fmt/ranges.h>
#include <google/protobuf/message.h>
#include <nlohmann/json.hpp>

#include "server/kserve/config_fields.h"
#include "server/kserve/model_config.h"
#include "server/kserve/model_config_message.h"

namespace tactus {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Json = nlohmann::ordered_json;

Json ToJson(const Message& message);

Json EnumName(const google::protobuf::EnumDescriptor* type, int number) {
  const auto* value = type->FindValueByNumber(number);
  return value == nullptr ? Json(number) : Json(value->name());
}

// A field's value, or its i-th where it is a list.
Json Value(const Message& m, const Reflection& r, const FieldDescriptor* f, int i = -1) {
  const bool one = i < 0;
  switch (f->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return one ? r.GetInt32(m, f) : r.GetRepeatedInt32(m, f, i);
    case FieldDescriptor::CPPTYPE_INT64:
      return one ? r.GetInt64(m, f) : r.GetRepeatedInt64(m, f, i);
    case FieldDescriptor::CPPTYPE_UINT32:
      return one ? r.GetUInt32(m, f) : r.GetRepeatedUInt32(m, f, i);
    case FieldDescriptor::CPPTYPE_UINT64:
      return one ? r.GetUInt64(m, f) : r.GetRepeatedUInt64(m, f, i);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return one ? r.GetDouble(m, f) : r.GetRepeatedDouble(m, f, i);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return one ? r.GetFloat(m, f) : r.GetRepeatedFloat(m, f, i);
    case FieldDescriptor::CPPTYPE_BOOL:
      return one ? r.GetBool(m, f) : r.GetRepeatedBool(m, f, i);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumName(f->enum_type(), one ? r.GetEnumValue(m, f) : r.GetRepeatedEnumValue(m, f, i));
    case FieldDescriptor::CPPTYPE_STRING:
      return one ? r.GetString(m, f) : r.GetRepeatedString(m, f, i);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(one ? r.GetMessage(m, f) : r.GetRepeatedMessage(m, f, i));
  }
  return nullptr;
}

// A map is an object; keys that are numbers become their digits.
Json MapToJson(const Message& m, const Reflection& r, const FieldDescriptor* f) {
  Json object = Json::object();
  for (int i = 0; i < r.FieldSize(m, f); ++i) {
    const Message& entry = r.GetRepeatedMessage(m, f, i);
    const Reflection& fields = *entry.GetReflection();
    const Json key = Value(entry, fields, f->message_type()->map_key());
    object[key.is_string() ? key.get<std::string>() : key.dump()] =
        Value(entry, fields, f->message_type()->map_value());
  }
  return object;
}

Json ToJson(const Message& message) {
  const Reflection& reflection = *message.GetReflection();
  Json object = Json::object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    if (field->is_map()) {
      object[field->name()] = MapToJson(message, reflection, field);
    } else if (field->is_repeated()) {
      Json& list = object[field->name()] = Json::array();
      for (int k = 0; k < reflection.FieldSize(message, field); ++k) {
        list.push_back(Value(message, reflection, field, k));
      }
    } else if (!field->has_presence() || reflection.HasField(message, field)) {
      object[field->name()] = Value(message, reflection, field);
    }
  }
  return object;
}

// Overwrites what the engine knows better and keeps what only the folder says (format, labels).
template <class Tensor>
void Complete(const std::vector<TensorSpec>& served, bool batches,
              google::protobuf::RepeatedPtrField<Tensor>* declared) {
  google::protobuf::RepeatedPtrField<Tensor> completed;
  for (const TensorSpec& spec : served) {
    Tensor* tensor = completed.Add();
    for (const Tensor& candidate : *declared) {
      if (candidate.name() == spec.name) *tensor = candidate;
    }
    tensor->set_name(spec.name);
    tensor->set_data_type(ToWire(spec.type));
    tensor->clear_dims();
    for (std::size_t i = batches ? 1 : 0; i < spec.dims.size(); ++i) {
      tensor->add_dims(spec.dims[i]);
    }
    if (!spec.reshape && !tensor->has_reshape()) continue;
    const Shape& inside = spec.reshape ? *spec.reshape : spec.dims;  // declared, though the same
    auto* shape = tensor->mutable_reshape()->mutable_shape();
    shape->Assign(inside.begin() + (batches ? 1 : 0), inside.end());
  }
  declared->Swap(&completed);
}

}  // namespace

Expected<inference::ModelConfig> ConfigOf(const ModelSpec& model) {
  inference::ModelConfig config;
  if (!config.ParseFromString(model.config)) {
    return Internal("the configuration of model '" + model.name + "' cannot be decoded");
  }
  config.set_name(model.name);
  config.set_platform(model.platform);
  config.set_max_batch_size(model.max_batch);
  if (model.platform == "onnxruntime_onnx" && config.backend().empty()) {
    config.set_backend("onnxruntime");
  }
  if (ReadsGraphs(config)) config.set_default_model_filename(GraphFileOf(config));
  if (config.version_policy().policy_choice_case() ==
      inference::ModelVersionPolicy::POLICY_CHOICE_NOT_SET) {
    config.mutable_version_policy()->mutable_latest()->set_num_versions(1);
  }
  for (const auto& [key, value] : model.parameters) {
    (*config.mutable_parameters())[key].set_string_value(value);
  }
  if (model.assumed_batch) (*config.mutable_parameters())["batch"].set_string_value("assumed");
  if (model.exits.size() > 1) {
    std::string names;
    for (const ExitSpec& exit : model.exits) names += (names.empty() ? "" : ", ") + exit.name;
    (*config.mutable_parameters())["exit_names"].set_string_value(names);
  }
  for (const std::vector<TensorSpec>* side : {&model.inputs, &model.outputs}) {
    for (const TensorSpec& tensor : *side) {
      if (!tensor.any_shape) continue;
      const std::string key = std::string(kAnyShapeKey) + tensor.name;
      (*config.mutable_parameters())[key].set_string_value("true");
    }
  }
  const std::size_t first = model.max_batch > 0 ? 1 : 0;
  for (const TensorSpec& input : model.inputs) {
    const auto found = model.found_shapes.find(input.name);
    if (found == model.found_shapes.end() || found->second.size() <= first) continue;
    const std::span sizes = std::span(found->second).subspan(first);
    auto& parameter = (*config.mutable_parameters())[std::string(kProfileShapeKey) + input.name];
    if (parameter.string_value().empty())
      parameter.set_string_value(fmt::format("{}", fmt::join(sizes, ",")));
  }
  Complete(model.inputs, model.max_batch > 0, config.mutable_input());
  Complete(model.outputs, model.max_batch > 0, config.mutable_output());
  return config;
}

Expected<std::string> ModelConfigJson(const ModelSpec& model) {
  const auto config = ConfigOf(model);
  if (!config) return std::unexpected(config.error());
  // Text that is not UTF-8 cannot reach a proto3 string by parsing, but a name may come from a
  // graph: replaced, not thrown.
  return ToJson(*config).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tactus
