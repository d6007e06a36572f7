#include "server/kserve/validation.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "server/kserve/classification.h"

namespace tactus {
namespace {

// In microseconds: a timeout beyond it is none, and in nanoseconds it might not fit.
constexpr std::int64_t kLongestUs = TimeLimit::kLongest / Micros(1);

// An integer that arrived with either sign, or as a number that happens to be whole.
std::optional<std::int64_t> WholeNumber(const ParameterValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* number = std::get_if<std::uint64_t>(&value)) {
    constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
    return *number > static_cast<std::uint64_t>(kMost) ? kMost : static_cast<std::int64_t>(*number);
  }
  return std::nullopt;
}

std::string Quoted(const std::vector<std::string_view>& names) {
  return names.empty() ? "[]" : fmt::format("['{}']", fmt::join(names, "','"));
}

std::vector<std::string_view> NamesOf(const std::vector<TensorSpec>& tensors) {
  std::vector<std::string_view> names;
  for (const TensorSpec& each : tensors) names.push_back(each.name);
  return names;
}

// Whether a sequence parameter asks for a sequence: 0, "" and false are what clients send without.
bool AsksForSequence(const ParameterValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* text = std::get_if<std::string_view>(&value)) return !text->empty();
  if (const auto* number = std::get_if<double>(&value)) return *number != 0;
  return WholeNumber(value) != 0;
}

std::unexpected<Error> WrongParameter(std::string_view name, std::string_view why) {
  return InvalidArgument(fmt::format("parameter '{}': {}", name, why));
}

Status ReadPriority(const ParameterValue& value, CallParameters& read) {
  const auto number = WholeNumber(value);
  if (!number || *number < 0 || *number > kLowestPriority) {
    return WrongParameter("priority",
                          fmt::format("must be a whole number from 1, the highest, to {}, or 0 for "
                                      "that of the model",
                                      kLowestPriority));
  }
  read.priority = static_cast<std::uint32_t>(*number);
  return {};
}

Status ReadTimeout(const ParameterValue& value, CallParameters& read) {
  const auto number = WholeNumber(value);
  if (!number || *number < 0) {
    return WrongParameter("timeout", "must be a whole number of microseconds, not below 0");
  }
  if (*number > 0 && *number <= kLongestUs) read.timeout = Micros(*number);
  return {};
}

Status ReadGranted(const ParameterValue& value, CallParameters& read) {
  const auto* const text = std::get_if<std::string_view>(&value);
  std::array<std::uint64_t, 4> numbers{};
  const char* at = text != nullptr ? text->data() : nullptr;
  const char* const end = text != nullptr ? at + text->size() : nullptr;
  bool fine = text != nullptr;
  for (std::size_t i = 0; fine && i < numbers.size(); ++i) {
    const auto [next, error] = std::from_chars(at, end, numbers[i]);
    fine = error == std::errc{} &&
           (i + 1 == numbers.size() ? next == end : next != end && *next == '.');
    at = next + 1;
  }
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (!fine || numbers[2] > kMost || numbers[3] > kMost || numbers[3] == 0) {
    return WrongParameter("tactus_granted", "must be TERM.BATCH.EXIT.ROWS, four whole numbers");
  }
  read.granted = {numbers[0], numbers[1], static_cast<std::uint32_t>(numbers[2]),
                  static_cast<std::uint32_t>(numbers[3])};
  return {};
}

Status ReadParameter(const Parameter& parameter, CallParameters& read) {
  const auto& [name, value] = parameter;
  if (name == "priority") return ReadPriority(value, read);
  if (name == "timeout") return ReadTimeout(value, read);
  if (name == "tactus_granted") return ReadGranted(value, read);
  if (name == "tactus_step") {
    const auto* const of_step = std::get_if<bool>(&value);
    if (of_step == nullptr) return WrongParameter(name, "must be a boolean");
    read.of_step = *of_step;
    return {};
  }
  if (name == "binary_data_output" || name == "triton_enable_empty_final_response") {
    if (!std::holds_alternative<bool>(value)) return WrongParameter(name, "must be a boolean");
    return {};
  }
  if (name.starts_with("sequence_") && AsksForSequence(value)) {
    return Fail(ErrorCode::kUnimplemented,
                fmt::format("parameter '{}': sequences are not supported", name));
  }
  if (name.starts_with("triton_")) {
    return InvalidArgument(fmt::format(
        "parameter keys starting with 'triton_' are reserved: '{}' is not known", name));
  }
  return {};
}

// The input of that name, or -1.
int IndexOf(std::span<const TensorSpec> tensors, std::string_view name) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

// Whether both are a scalar, one as it is and one as config.pbtxt writes it.
bool IsScalarOf(const Shape& shape, const TensorSpec& spec) {
  return SameScalar(shape, spec.dims) &&
         (spec.dims.empty() || (spec.reshape && spec.reshape->empty()));
}

// One model's inputs against one call's.
class InputCheck {
 public:
  explicit InputCheck(const ModelSpec& model) : model_(model) {}

  Status Check(const InputMessage& input, const TensorSpec& spec) {
    if (Status status = CheckType(input, spec); !status) return status;
    if (Status status = CheckShape(input, spec); !status) return status;
    if (input.wrong_data) return std::unexpected(*input.wrong_data);
    const std::int64_t elements = *ElementCount(input.shape);
    return spec.type == DataType::kBytes ? CheckBytes(input, elements)
                                         : CheckSize(input, spec.type, elements);
  }

 private:
  std::unexpected<Error> Wrong(const InputMessage& input, std::string_view why) const {
    return InvalidArgument(
        fmt::format("input '{}' for model '{}': {}", input.name, model_.name, why));
  }

  Status CheckType(const InputMessage& input, const TensorSpec& spec) const {
    if (input.datatype == Name(spec.type)) return {};
    return Wrong(input, fmt::format("data-type is '{}', but the model expects '{}'", input.datatype,
                                    Name(spec.type)));
  }

  Status CheckShape(const InputMessage& input, const TensorSpec& spec) {
    for (const std::int64_t dim : input.shape) {
      if (dim < 0) return Wrong(input, fmt::format("negative dimension {}", dim));
    }
    if (!ElementCount(input.shape)) {
      return TooManyElements(input);
    }
    const bool lacks_rows = model_.max_batch > 0 && spec.any_shape && input.shape.empty();
    if (lacks_rows || (!spec.Takes(input.shape) && !IsScalarOf(input.shape, spec))) {
      return InvalidArgument(
          fmt::format("unexpected shape for input '{}' for model '{}'. Expected {}, got {}",
                      input.name, model_.name, ToString(spec.dims), ToString(input.shape)));
    }
    if (model_.max_batch > 0 && !input.shape.empty()) return CheckBatch(input);
    return {};
  }

  Status CheckBatch(const InputMessage& input) {
    const std::int64_t rows = input.shape[0];
    if (rows < 1) return Wrong(input, "the batch has no rows");
    if (rows > model_.max_batch) {
      return InvalidArgument(
          fmt::format("inference request batch-size must be <= {} for '{}', got {}{}",
                      model_.max_batch, model_.name, rows,
                      model_.batch_origin == BatchOrigin::kAssumed
                          ? "; nobody has declared this batch: state max_batch_size in "
                            "config.pbtxt, or 0 there if the first dimension is none"
                          : ""));
    }
    if (rows_ == 0) rows_ = rows;
    if (rows != rows_) {
      return Wrong(input, fmt::format("{} rows, but the inputs before it have {}", rows, rows_));
    }
    return {};
  }

  Status CheckSize(const InputMessage& input, DataType type, std::int64_t elements) const {
    const auto needed = ByteSize(input, type, elements);
    if (!needed) return std::unexpected(needed.error());
    const auto bytes = static_cast<std::int64_t>(input.data.size());
    if (bytes == *needed) return {};
    return InvalidArgument(fmt::format(
        "input byte size mismatch for input '{}' for model '{}'. Expected {}, got {}: its shape is "
        "{} of {}",
        input.name, model_.name, *needed, bytes, ToString(input.shape), Name(type)));
  }

  Status CheckBytes(const InputMessage& input, std::int64_t elements) const {
    std::span<const std::byte> rest = input.data;
    std::int64_t found = 0;
    for (; found < elements && rest.size() >= sizeof(std::uint32_t); ++found) {
      std::uint32_t length;
      std::memcpy(&length, rest.data(), sizeof length);
      rest = rest.subspan(sizeof length);
      if (length > rest.size()) {
        return Wrong(input, fmt::format("BYTES element {} says {} bytes where {} are left", found,
                                        length, rest.size()));
      }
      rest = rest.subspan(length);
    }
    if (found < elements) {
      return InvalidArgument(fmt::format(
          "expected {} string elements for inference input '{}' for model '{}', got {}: each is a "
          "32-bit length and that many bytes",
          elements, input.name, model_.name, found));
    }
    if (rest.empty()) return {};
    return InvalidArgument(fmt::format(
        "unexpected number of string elements {} for inference input '{}' for model '{}', "
        "expecting {}: {} bytes are left",
        elements + 1, input.name, model_.name, elements, rest.size()));
  }

  const ModelSpec& model_;
  std::int64_t rows_ = 0;
};

// In Triton's words.
std::unexpected<Error> MissingInputs(const ModelSpec& model, const CallMessage& message,
                                     const std::vector<std::string_view>& missing) {
  std::vector<std::string_view> got;
  for (const InputMessage& input : message.inputs) got.push_back(input.name);
  const auto required = std::ranges::count(model.inputs, false, &TensorSpec::optional);
  const std::size_t all = model.inputs.size();
  const std::string expected =
      static_cast<std::size_t>(required) == all
          ? fmt::format("{} inputs", all)
          : fmt::format("number of inputs between {} and {}", required, all);
  return InvalidArgument(fmt::format(
      "expected {} but got {} inputs for model '{}'. Got input(s) {}, but missing required "
      "input(s) {}. Please provide all required input(s).",
      expected, message.inputs.size(), model.name, Quoted(got), Quoted(missing)));
}

Status FillInputs(const ModelSpec& model, const CallMessage& message, InferCall& call) {
  call.inputs.resize(model.inputs.size());
  std::vector<bool> given(model.inputs.size(), false);
  InputCheck check(model);
  for (const InputMessage& input : message.inputs) {
    const int index = IndexOf(model.inputs, input.name);
    if (index < 0) {
      return InvalidArgument(
          fmt::format("unexpected inference input '{}' for model '{}', which has {}", input.name,
                      model.name, Quoted(NamesOf(model.inputs))));
    }
    if (given[index]) {
      return InvalidArgument(fmt::format("input '{}' is given twice", input.name));
    }
    given[index] = true;
    const TensorSpec& spec = model.inputs[index];
    if (Status status = check.Check(input, spec); !status) return status;
    call.inputs[index] = {.name = spec.name,
                          .type = spec.type,
                          .shape = IsScalarOf(input.shape, spec) ? spec.dims : input.shape,
                          .data = input.data};
  }
  std::vector<std::string_view> missing;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i]) continue;
    const TensorSpec& spec = model.inputs[i];
    if (!spec.optional) missing.push_back(spec.name);
    call.inputs[i] = {.name = spec.name, .type = spec.type, .absent = true};
  }
  return missing.empty() ? Status() : MissingInputs(model, message, missing);
}

Status FillOutputs(const ModelSpec& model, const CallMessage& message, InferCall& call) {
  for (const std::string_view name : message.outputs) {
    const int index = IndexOf(model.outputs, name);
    if (index < 0) {
      return InvalidArgument(
          fmt::format("unexpected inference output '{}' for model '{}', which has {}", name,
                      model.name, Quoted(NamesOf(model.outputs))));
    }
    if (std::find(call.outputs.begin(), call.outputs.end(), index) != call.outputs.end()) {
      return InvalidArgument(
          fmt::format("Duplicate output name '{}' is not allowed in a request", name));
    }
    call.outputs.push_back(index);
  }
  if (std::ranges::any_of(message.classes, [](std::uint32_t count) { return count > 0; })) {
    call.classes = message.classes;
  }
  return {};
}

}  // namespace

std::unexpected<Error> TooManyElements(const InputMessage& input) {
  std::int64_t count = 1;
  for (const std::int64_t dim : input.shape) {
    if (!__builtin_mul_overflow(count, dim, &count)) continue;
    return InvalidArgument(
        fmt::format("input '{}': shape {} causes total element count to exceed maximum size of {}",
                    input.name, ToString(input.shape), std::numeric_limits<std::int64_t>::max()));
  }
  return InvalidArgument(fmt::format("byte size overflow for input '{}': shape {} of {}",
                                     input.name, ToString(input.shape), input.datatype));
}

Expected<std::int64_t> ByteSize(const InputMessage& input, DataType type, std::int64_t elements) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto size = static_cast<std::int64_t>(ElementSize(type));
  if (size == 0 || elements <= kMost / size) return elements * size;
  return TooManyElements(input);
}

Expected<CallParameters> ReadParameters(std::span<const Parameter> parameters) {
  CallParameters read;
  for (const Parameter& parameter : parameters) {
    if (Status status = ReadParameter(parameter, read); !status) {
      return std::unexpected(status.error());
    }
  }
  return read;
}

Expected<InferCall> MakeCall(std::shared_ptr<const ModelSpec> model, const CallMessage& message,
                             std::chrono::steady_clock::time_point received) {
  const auto parameters = ReadParameters(message.parameters);
  if (!parameters) return std::unexpected(parameters.error());
  if (parameters->granted && !message.takes_granted) {
    return InvalidArgument(
        "parameter 'tactus_granted': only front ends of a site have it, at a worker's site port");
  }
  InferCall call;
  if (Status status = FillInputs(*model, message, call); !status) {
    return std::unexpected(status.error());
  }
  if (Status status = FillOutputs(*model, message, call); !status) {
    return std::unexpected(status.error());
  }
  call.model = std::move(model);
  if (Status classes = CheckClasses(call); !classes) return std::unexpected(classes.error());
  call.received = received;
  call.limit.Tighten(parameters->timeout);
  call.priority = parameters->priority;
  call.granted = parameters->granted;
  // A client that shares out a time of its own must state it.
  call.due_by_limit = parameters->of_step && parameters->timeout.has_value();
  return call;
}

Expected<std::int64_t> ParseVersion(std::string_view text) {
  if (text.empty()) return -1;
  std::int64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  const bool digits = text.find_first_not_of("0123456789") == text.npos;
  if (digits && error == std::errc::result_out_of_range) {
    return NotFound(fmt::format("there is no version {}", text.substr(0, 32)));
  }
  if (!digits || error != std::errc{} || end != text.data() + text.size()) {
    return InvalidArgument(fmt::format(
        "failed to get model version from specified version string '{}': it is not a number",
        text.substr(0, 32)));
  }
  return version;
}

std::unexpected<Error> NoRegion(std::string_view extension, std::string_view name) {
  return NotFound(fmt::format("Unable to find {} shared memory region: '{}'",
                              extension.substr(0, extension.find('_')), name));
}

std::vector<std::string_view> ServerExtensions(SettingsServed settings) {
  std::vector<std::string_view> extensions{
      "classification",    "model_repository", "model_repository(unload_dependents)",
      "schedule_policy",   "statistics",       "model_configuration",
      "binary_tensor_data"};
  if (settings.trace) extensions.push_back("trace");
  if (settings.logging) extensions.push_back("logging");
  return extensions;
}

}  // namespace tactus
