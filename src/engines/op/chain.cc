#include "engines/op/chain.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <new>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tactus::op {
namespace {

constexpr std::size_t kLongestChain = 32;
constexpr std::int64_t kLargestSize = std::int64_t{1} << 30;

std::string Describe(const TensorSpec& tensor) {
  return fmt::format("{} {}", Name(tensor.type), ToString(tensor.dims));
}

// Whether a tensor of one may be one of the other: sizes that are open fit any.
bool MayFit(const TensorSpec& a, const TensorSpec& b) {
  if (a.type != b.type || a.dims.size() != b.dims.size()) return false;
  for (std::size_t i = 0; i < a.dims.size(); ++i) {
    if (a.dims[i] >= 0 && b.dims[i] >= 0 && a.dims[i] != b.dims[i]) return false;
  }
  return true;
}

// Checks a tensor that comes to an operator: what follows may count on its sizes.
Status CheckTensor(const Tensor& tensor, const TensorSpec& port) {
  const auto wrong = [&](std::string_view why) {
    return InvalidArgument(fmt::format("'{}' is {} {}: {}", port.name, Name(tensor.type),
                                       ToString(tensor.shape), why));
  };
  if (!MayFit({port.name, tensor.type, tensor.shape}, port)) {
    return wrong("it must be " + Describe(port));
  }
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] > kLargestSize) return wrong("a size is absurd");
    if (tensor.shape[i] == 0 && i > 0) return wrong("only the first dimension may be 0");
  }
  return {};
}

}  // namespace

// Gives each tensor a slot, and each port its tensor.
class Chain::Builder {
 public:
  explicit Builder(ModelSpec& spec) : spec_(spec) {
    for (const TensorSpec& input : spec.inputs) Add(input);
    given_ = !spec.inputs.empty();
  }

  Expected<Chain> Build() {
    if (spec_.max_batch > 1) {
      return Wrong(
          "operators run one call at a time: set max_batch_size to 0, or to 1 if the first "
          "dimension of each tensor counts items");
    }
    const auto list = spec_.parameters.find("op");
    if (list == spec_.parameters.end()) {
      return Wrong("parameters lack 'op', the operators by comma, such as 'decode_jpeg, resize'");
    }
    const std::vector<std::string> items = SplitList(list->second);
    if (items.size() > kLongestChain) {
      return Wrong(fmt::format("op: more than {} operators", kLongestChain));
    }
    std::vector<std::pair<std::string, const OperatorKind*>> kinds;
    for (const std::string& item : items) {
      const std::size_t equals = item.find('=');
      const std::string kind = equals == item.npos ? item : SplitList(item.substr(equals + 1))[0];
      const std::string name = equals == item.npos ? item : SplitList(item.substr(0, equals))[0];
      kinds.emplace_back(name, FindOperator(kind));
      if (kinds.back().second == nullptr) return Wrong(UnknownOperator(kind));
      if (name.empty() ||
          std::ranges::count(kinds, name, [](const auto& k) { return k.first; }) > 1) {
        return Wrong(fmt::format("op: '{}' stands twice: name one, as 'other={}'", name, kind));
      }
    }
    if (Status known = CheckParameters(kinds); !known) return std::unexpected(known.error());
    if (!given_) {
      if (Status found = FindInputs(kinds); !found) return std::unexpected(found.error());
    }
    for (const auto& [name, kind] : kinds) {
      if (Status added = AddStep(name, *kind); !added) {
        return Wrong(added.error().message);
      }
    }
    return Finish();
  }

 private:
  struct Slot {
    TensorSpec tensor;
    bool read = false;
    std::string writer;  // empty: an input of the model
  };

  std::unexpected<Error> Wrong(std::string_view why) const {
    return InvalidArgument(fmt::format("model '{}': {}", spec_.name, why));
  }

  static std::string UnknownOperator(std::string_view name) {
    std::string known;
    for (const OperatorKind& kind : OperatorKinds()) {
      known += (known.empty() ? "" : ", ") + std::string(kind.name);
    }
    return fmt::format("op: there is no operator '{}'; there are: {}", name, known);
  }

  template <class Kinds>
  Status CheckParameters(const Kinds& kinds) const {
    for (const auto& [key, value] : spec_.parameters) {
      const std::size_t dot = key.find('.');
      if (dot == key.npos || key.starts_with("profile_shape.")) continue;
      const auto step = key.substr(0, dot);
      if (std::ranges::any_of(kinds, [&](const auto& k) { return k.first == step; })) continue;
      return Wrong(fmt::format("parameters[\"{}\"]: the chain has no operator '{}'", key, step));
    }
    return {};
  }

  std::filesystem::path DataFile() const {
    return spec_.exits.empty() ? std::filesystem::path{} : spec_.exits[0].graph;
  }

  std::size_t Add(TensorSpec tensor) {
    slots_.push_back({std::move(tensor), false, {}});
    return slots_.size() - 1;
  }

  std::optional<std::size_t> Find(std::string_view name) const {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].tensor.name == name) return i;
    }
    return std::nullopt;
  }

  // The tensor that port `i` reads.
  std::string ReadBy(Arguments& arguments, const Operator& op, std::size_t i,
                     const std::string& before) const {
    if (auto named = arguments.Tensor(op.inputs[i].name)) return *named;
    return i == 0 && !before.empty() ? before : op.inputs[i].name;
  }

  // What no operator writes before another reads it is an input of the model.
  template <class Kinds>
  Status FindInputs(const Kinds& kinds) {
    std::vector<std::string> written;
    std::string before;
    for (const auto& [name, kind] : kinds) {
      Arguments arguments(name, spec_.parameters, DataFile());
      const Operator op = kind->make(arguments);
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        TensorSpec tensor = op.inputs[i];
        tensor.name = ReadBy(arguments, op, i, before);
        if (std::ranges::count(written, tensor.name) > 0 || Find(tensor.name)) continue;
        spec_.inputs.push_back(tensor);
        Add(std::move(tensor));
      }
      for (std::size_t i = 0; i < op.outputs.size(); ++i) {
        written.push_back(arguments.Tensor(op.outputs[i].name).value_or(op.outputs[i].name));
        if (i == 0) before = written.back();
      }
    }
    return {};
  }

  Status AddStep(const std::string& name, const OperatorKind& kind) {
    Arguments arguments(name, spec_.parameters, DataFile());
    Step step{name, kind.make(arguments), {}, {}};
    const auto wrong = [&](std::string_view why) {
      return InvalidArgument(fmt::format("operator '{}': {}", name, why));
    };
    for (std::size_t i = 0; i < step.op.inputs.size(); ++i) {
      const TensorSpec& port = step.op.inputs[i];
      const std::string tensor = ReadBy(arguments, step.op, i, before_);
      const auto slot = Find(tensor);
      if (!slot) {
        return wrong(fmt::format(
            "it reads '{}', which is no input of the model and which no operator before it "
            "writes; name another tensor in {}.{}",
            tensor, name, port.name));
      }
      if (!MayFit(slots_[*slot].tensor, port)) {
        return wrong(fmt::format("its {} is '{}', which is {}; it must be {}", port.name, tensor,
                                 Describe(slots_[*slot].tensor), Describe(port)));
      }
      slots_[*slot].read = true;
      step.reads.push_back(*slot);
    }
    for (std::size_t i = 0; i < step.op.outputs.size(); ++i) {
      TensorSpec tensor = step.op.outputs[i];
      for (const KeptSize& kept : step.op.kept) {
        if (kept.output != i) continue;
        tensor.dims[kept.of_output] = slots_[step.reads[kept.input]].tensor.dims[kept.of_input];
      }
      tensor.name = arguments.Tensor(tensor.name).value_or(tensor.name);
      if (Find(tensor.name)) {
        return wrong(fmt::format("it writes '{}', which there is already; name another in {}.{}",
                                 tensor.name, name, step.op.outputs[i].name));
      }
      if (i == 0) before_ = tensor.name;
      step.writes.push_back(Add(std::move(tensor)));
      slots_.back().writer = name;
    }
    if (Status ended = arguments.End(); !ended) return ended;
    chain_.steps_.push_back(std::move(step));
    return {};
  }

  Expected<Chain> Finish() {
    for (const Slot& slot : slots_) {
      if (slot.writer.empty() && !slot.read) {
        return Wrong(fmt::format("no operator reads its input '{}'", slot.tensor.name));
      }
    }
    if (spec_.outputs.empty()) {
      for (const Slot& slot : slots_) {
        if (!slot.read) spec_.outputs.push_back(slot.tensor);
      }
    }
    for (const TensorSpec& output : spec_.outputs) {
      const auto slot = Find(output.name);
      if (!slot || slots_[*slot].writer.empty()) {
        return Wrong(fmt::format("no operator writes its output '{}'", output.name));
      }
      if (!MayFit(output, slots_[*slot].tensor)) {
        return Wrong(fmt::format("output '{}' is declared {}, but operator '{}' writes {}",
                                 output.name, Describe(output), slots_[*slot].writer,
                                 Describe(slots_[*slot].tensor)));
      }
      chain_.results_.push_back(*slot);
    }
    chain_.outputs_ = spec_.outputs;
    chain_.slots_ = slots_.size();
    chain_.inputs_ = spec_.inputs.size();
    return std::move(chain_);
  }

  ModelSpec& spec_;
  bool given_ = false;
  std::vector<Slot> slots_;
  std::string before_;  // the first tensor that the last operator wrote
  Chain chain_;
};

Expected<Chain> Chain::Make(ModelSpec& spec) { return Builder(spec).Build(); }

Expected<std::vector<Tensor>> Chain::Run(std::span<const Tensor> inputs,
                                         std::uint32_t* cut_jpegs) const {
  try {
    return RunSteps(inputs, cut_jpegs);
  } catch (const std::bad_alloc&) {
    return Fail(ErrorCode::kResourceExhausted, "there is no memory for the operators' results");
  } catch (const std::length_error&) {
    return Fail(ErrorCode::kResourceExhausted, "there is no memory for the operators' results");
  }
}

Expected<std::vector<Tensor>> Chain::RunSteps(std::span<const Tensor> inputs,
                                              std::uint32_t* cut_jpegs) const {
  std::vector<Tensor> tensors(slots_);
  std::ranges::copy(inputs, tensors.begin());
  std::vector<Tensor> read;
  for (const Step& step : steps_) {
    const auto wrong = [&](const Error& error) {
      return Fail(error.code, fmt::format("operator '{}': {}", step.name, error.message));
    };
    read.clear();
    for (std::size_t i = 0; i < step.reads.size(); ++i) {
      read.push_back(tensors[step.reads[i]]);
      if (Status fits = CheckTensor(read[i], step.op.inputs[i]); !fits) return wrong(fits.error());
    }
    auto written = step.op.run(read);
    if (!written) return wrong(written.error());
    for (std::size_t i = 0; i < step.writes.size(); ++i) {
      if (cut_jpegs != nullptr) *cut_jpegs += (*written)[i].cut_jpegs;
      tensors[step.writes[i]] = std::move((*written)[i]);
    }
  }
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < results_.size(); ++i) {
    Tensor& result = tensors[results_[i]];
    if (!MayFit({{}, result.type, result.shape}, outputs_[i])) {
      return InvalidArgument(fmt::format("output '{}' became {}, but is declared {}",
                                         outputs_[i].name, ToString(result.shape),
                                         ToString(outputs_[i].dims)));
    }
    results.push_back(result);
  }
  return results;
}

std::vector<Tensor> Chain::Sample() const {
  std::vector<Tensor> samples(inputs_);
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    const std::vector<Tensor> wanted = step->op.sample();
    for (std::size_t i = 0; i < step->reads.size(); ++i) {
      if (step->reads[i] < inputs_) samples[step->reads[i]] = wanted[i];
    }
  }
  return samples;
}

}  // namespace tactus::op
