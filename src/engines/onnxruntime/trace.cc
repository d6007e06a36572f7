#include "engines/onnxruntime/trace.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/tensor.h"

namespace tactus {
namespace {

using nlohmann::json;

constexpr double kMostBytes = 1e15;  // of one kernel; more is damage

double Elements(const Shape& shape) {
  double count = 1;
  for (const std::int64_t dim : shape) count *= static_cast<double>(dim);
  return count;
}

// [{"float": [1, 16, 28, 28]}, ...]
std::optional<std::vector<Shape>> ReadShapes(const json& args, const char* key) {
  const auto list = args.find(key);
  if (list == args.end() || !list->is_array()) return std::nullopt;
  std::vector<Shape> shapes;
  for (const json& tensor : *list) {
    if (!tensor.is_object() || tensor.size() != 1 || !tensor.begin()->is_array()) {
      return std::nullopt;
    }
    Shape& shape = shapes.emplace_back();
    for (const json& dim : *tensor.begin()) {
      if (!dim.is_number_unsigned() || dim.get<std::uint64_t>() >> 40 != 0) return std::nullopt;
      shape.push_back(dim.get<std::int64_t>());
    }
  }
  return shapes;
}

// ONNX Runtime writes sizes as text.
std::optional<double> ReadBytes(const json& args, const char* key) {
  const auto found = args.find(key);
  if (found == args.end() || !found->is_string()) return std::nullopt;
  const std::string text = found->get<std::string>();
  char* end = nullptr;
  const double bytes = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(bytes >= 0 && bytes <= kMostBytes)) return std::nullopt;
  return bytes;
}

// For each element of the output; nullopt: the shapes do not fit the kernel.
std::optional<double> MultiplyAdds(const std::string& op, const std::vector<Shape>& in,
                                   const Shape& out) {
  const auto has = [&](std::size_t inputs) { return in.size() >= inputs; };
  // [outputs, inputs of the group, kernel ...]
  if (op.ends_with("Conv")) {
    if (!has(2) || in[1].size() < 2 || in[1][0] < 1) return std::nullopt;
    return Elements(in[1]) / static_cast<double>(in[1][0]);
  }
  if (op == "ConvTranspose") {
    if (!has(2) || in[1].size() < 2 || in[1][0] < 1 || Elements(out) < 1) return std::nullopt;
    return Elements(in[0]) * Elements(in[1]) / static_cast<double>(in[1][0]) / Elements(out);
  }
  if (op.ends_with("Gemm")) {  // either side may be transposed: what is not a row is summed over
    if (!has(2) || out.size() != 2 || out[0] < 1) return std::nullopt;
    return Elements(in[0]) / static_cast<double>(out[0]);
  }
  if (op.ends_with("MatMul")) {
    if (!has(2) || in[0].empty()) return std::nullopt;
    return static_cast<double>(in[0].back());
  }
  if (op == "LSTM" || op == "GRU" || op == "RNN") {  // X [steps, batch, in], W, R
    if (!has(3) || in[0].size() != 3 || Elements(out) < 1) return std::nullopt;
    return static_cast<double>(in[0][0]) * static_cast<double>(in[0][1]) *
           (Elements(in[1]) + Elements(in[2])) / Elements(out);
  }
  return 0.5;  // one operation
}

Expected<KernelWork> ReadKernel(const json& event) {
  const std::string name = event.value("name", "");
  const auto damaged = [&](const char* what) {
    return InvalidArgument(fmt::format("kernel '{}' of the trace {}", name, what));
  };
  const auto args = event.find("args");
  if (args == event.end() || !args->is_object()) return damaged("has no arguments");
  const std::string op = args->value("op_name", "");
  const auto in = ReadShapes(*args, "input_type_shape");
  const auto out = ReadShapes(*args, "output_type_shape");
  if (op.empty() || !in || !out) return damaged("does not name its operators and shapes");
  const auto weights = ReadBytes(*args, "parameter_size");
  const auto read = ReadBytes(*args, "activation_size");
  const auto written = ReadBytes(*args, "output_size");
  if (!weights || !read || !written) return damaged("does not say how many bytes it moves");
  KernelWork work{0, *weights, *read + *written};
  if (out->empty()) return work;
  const Shape& first = out->front();
  const auto multiply_adds = MultiplyAdds(op, *in, first);
  if (!multiply_adds) return damaged("has shapes that do not fit its operator");
  work.operations = 2 * *multiply_adds * Elements(first);
  if (!std::isfinite(work.operations)) return damaged("has shapes beyond all bounds");
  return work;
}

// The events of a run come before its "model_run".
Expected<std::vector<BatchWork>> ReadRuns(const json& events) {
  std::vector<BatchWork> runs;
  BatchWork run;
  for (const json& event : events) {
    if (!event.is_object())
      return InvalidArgument("the trace contains something that is not an event");
    const std::string category = event.value("cat", "");
    const std::string name = event.value("name", "");
    if (category == "Session" && name == "model_run") {
      runs.push_back(std::move(run));
      run.clear();
    }
    if (category != "Node" || !name.ends_with("_kernel_time")) continue;
    auto kernel = ReadKernel(event);
    if (!kernel) return std::unexpected(std::move(kernel.error()));
    run.push_back(*kernel);
  }
  if (!run.empty()) return InvalidArgument("the trace ends within a run");
  return runs;
}

}  // namespace

Expected<std::vector<BatchWork>> ParseTrace(std::string_view text) {
  const json events = json::parse(text, nullptr, false);
  if (!events.is_array()) return InvalidArgument("the trace is not a JSON list");
  try {
    return ReadRuns(events);
  } catch (const json::exception& e) {  // a field of another type than ONNX Runtime writes
    return InvalidArgument(fmt::format("the trace is damaged: {}", e.what()));
  }
}

Expected<std::vector<BatchWork>> TakeTrace(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  if (!in) return NotFound(fmt::format("{}: cannot read ONNX Runtime's trace", path.string()));
  return ParseTrace(text);
}

}  // namespace tactus
