// What a model is to those who serve it and to those who send it requests: its tensors, its exits,
// what its owner asks for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "base/serving_time.h"
#include "core/tensor.h"

namespace tactus {

// A model's files are other ones than those that it was tried with, or change while it is loaded.
inline constexpr ErrorCode kFilesChanged = ErrorCode::kAlreadyExists;

// In front of a tensor's name, the key of a parameter, "true" where TensorSpec::any_shape is.
inline constexpr std::string_view kAnyShapeKey = "any_shape.";

// One exit's graph: the model cut off behind that exit.
struct ExitSpec {
  std::string name;
  std::filesystem::path graph;  // empty for engines that need none
  double accuracy = 0;
};

// An input of the row to measure a model with, as its folder states it.
struct StatedSample {
  enum class Data { kZeros, kNoise, kFile };

  std::string input;
  Shape dims;  // of one row, without the batch dimension; all above 0
  Data data = Data::kZeros;
  std::filesystem::path file;  // kFile: the elements as an engine takes them
};

// Why a model batches, or does not.
enum class BatchOrigin {
  kDeclared,   // somebody says so: config.pbtxt, or whoever made the spec
  kAssumed,    // nobody does, and it is tried (profiling/model_trial.h)
  kDisproved,  // either, and batches came out wrong when it served
};

// What a model's folder says, completed from its graphs on load.
struct ModelSpec {
  std::string name;
  std::int64_t version = 1;
  std::string platform;  // "onnxruntime_onnx", "identity", "emulated"
  int max_batch = 0;     // 0: no batch dimension; below 0, until an engine loads it: unknown
  Duration slo{};
  int priority = 1;
  std::vector<TensorSpec> inputs;  // dims include the batch dimension where max_batch > 0
  std::vector<TensorSpec> outputs;
  std::vector<ExitSpec> exits;  // shallowest first, at least one
  // Latencies that come with the model, a profile or a table of them; empty: none do.
  std::filesystem::path profile;
  std::map<std::string, std::vector<std::string>> labels;  // of classes, by output; may have none
  std::map<std::string, std::string> parameters;
  std::string config;  // as declared, encoded by the front ends; opaque elsewhere
  // The digest of all that its folder holds, if the reader was asked for it; else empty.
  std::string digest = {};
  // Which load of the model this is: lanes with one number share what the first of them read from
  // its files. 0: shared with nobody.
  std::uint64_t load = 0;
  std::vector<StatedSample> sample = {};  // inputs that are not here are made up
  // The hash of all files that a load read, as far as its engine says. Where it is set before a
  // load, the files must be the same still (LoadOnLane); 0: any will do.
  std::uint64_t contents = 0;
  // Inputs that the graph has defaults for, as far as the engine says. Of these, `inputs` has the
  // ones that the folder states.
  std::vector<std::string> defaulted = {};
  BatchOrigin batch_origin = BatchOrigin::kDeclared;
  // Where the batch is or was assumed, what max_batch was before it was tried; nothing: declared.
  std::optional<int> assumed_batch = std::nullopt;
  // Where max_batch is 0: whether the first dimension was the batch, or may turn out to be it. A
  // request for classes means those of each row then, before and after.
  bool rows_in_front = false;
  // Where max_batch_size is declared: "models/m/config.pbtxt:3:1"; empty: nobody said.
  std::string batch_place = {};
  // A shape that the model takes of a row of each input with open dimensions, found by trial.
  std::map<std::string, Shape> found_shapes = {};
};

}  // namespace tactus
