#include "profiling/model_trial.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/memory_guard.h"
#include "profiling/batch_trial.h"
#include "profiling/sample_row.h"

namespace tactus {
namespace {

void Unload(Engine& engine, const std::vector<ModelHandle>& handles) {
  for (const ModelHandle handle : handles) engine.Unload(handle);
}

// Which sizes were made up, and for which of the model's inputs.
std::string SizesText(const ModelSpec& spec) {
  std::string text;
  std::string first;
  for (const TensorSpec& input : spec.inputs) {
    const auto found = spec.found_shapes.find(input.name);
    if (found == spec.found_shapes.end() || input.optional || StatesShape(spec, input)) continue;
    const Shape& shape = found->second;
    const std::size_t batch = spec.max_batch > 0 ? 1 : 0;
    bool chosen = false;
    for (std::size_t d = batch; d < shape.size(); ++d) {
      const bool open = input.any_shape || input.dims[d] < 0;
      chosen = chosen || (open && (d > 0 || shape[d] != 1));
    }
    if (!chosen) continue;
    if (first.empty()) first = input.name;
    text += fmt::format("{}'{}' {}", text.empty() ? "" : ", ", input.name,
                        ToString(std::span(shape).subspan(batch)));
  }
  if (text.empty()) return text;
  return fmt::format(
      "model '{}': its open dimensions are taken to be {} where it is tried and measured; "
      "profile_shape.{} in its parameters states other sizes",
      spec.name, text, first);
}

std::string Untried(const ModelSpec& spec, const std::string& failure) {
  return fmt::format(
      "model '{}' could not be tried, no made-up row ran: {}; state a row that it takes in "
      "model_warmup, or 'profile_shape.<input>' in its parameters",
      spec.name, failure);
}

// The assumed batch did not hold: without one.
Expected<TriedModel> LoadPlain(ModelSpec spec, Engine& engine, std::span<const LaneSpec> lanes,
                               std::uint64_t first, const BatchTrial& batch) {
  const bool shown = !spec.found_shapes.empty();  // by a call
  TriedModel tried{.spec = std::move(spec)};
  tried.spec.max_batch = 0;
  tried.spec.batch_origin = BatchOrigin::kAssumed;
  auto handles = LoadOnLanes(tried.spec, engine, lanes);
  if (!handles) return std::unexpected(std::move(handles.error()));
  tried.handles = *std::move(handles);
  Trial trial(engine, tried.handles[0], tried.spec, first);
  const bool ran = !batch.endless && trial.FindSizes();
  const bool unknown = batch.end == BatchTrial::End::kUntried;
  const bool silent = batch.end == BatchTrial::End::kSilent;
  tried.ran = ran;
  tried.untried = unknown && !ran && !shown;
  tried.undecided = (unknown && !ran) || silent;
  if (tried.undecided) tried.spec.rows_in_front = true;
  tried.gave = trial.gave();
  if (unknown && !ran) {
    tried.said.push_back(Untried(tried.spec, batch.why) +
                         "; until a real call has shown what it takes, each request runs alone");
  } else if (silent) {
    tried.said.push_back(fmt::format(
        "model '{}': no batch dimension was declared, and whether its rows depend on each other "
        "could not be tried ({}): each request runs alone; where they do not, state max_batch_size",
        tried.spec.name, batch.why));
  } else {
    tried.said.push_back(fmt::format(
        "model '{}': no batch dimension was declared, and it does not run in batches ({}): each "
        "request runs alone",
        tried.spec.name, batch.why));
  }
  if (ran) tried.sizes = SizesText(tried.spec);
  return tried;
}

// Where a message about max_batch_size begins.
std::string AtBatch(const ModelSpec& spec) {
  return spec.batch_place.empty() ? "" : spec.batch_place + ": ";
}

// The optional inputs that no row has, as far as its folder says.
std::vector<std::string> LeftOut(const ModelSpec& spec) {
  std::vector<std::string> names;
  for (const TensorSpec& input : spec.inputs) {
    if (input.optional && !StatesShape(spec, input)) names.push_back(input.name);
  }
  return names;
}

// With optional inputs too, all of them, and each alone if they are few: rows that give them may
// depend on each other where others do not. What the first trial has found, unless one of these
// speaks against it.
BatchTrial TryOptional(Engine& engine, ModelHandle handle, ModelSpec& spec, std::uint64_t first,
                       BatchTrial found) {
  constexpr std::size_t kFew = 4;
  constexpr std::uint64_t kBatches = std::uint64_t{1} << 16;  // of a trial, at most
  const std::vector<std::string> names = LeftOut(spec);
  std::vector<std::span<const std::string>> sets{names};
  for (std::size_t i = 0; names.size() > 1 && names.size() <= kFew && i < names.size(); ++i) {
    sets.push_back(std::span(names).subspan(i, 1));
  }
  const auto sizes = spec.found_shapes;
  for (const auto& present : sets) {
    if (present.empty() || found.end != BatchTrial::End::kHolds) break;
    Trial trial(engine, handle, spec, first += kBatches, present);
    BatchTrial with = trial.TryBatch();
    spec.found_shapes = sizes;
    if (with.end == BatchTrial::End::kHolds) continue;
    if (with.end == BatchTrial::End::kUntried) with.end = BatchTrial::End::kSilent;
    with.why =
        fmt::format("with its optional input '{}': {}", fmt::join(present, "', '"), with.why);
    found = std::move(with);
  }
  return found;
}

// What a trial says of a batch that somebody declared.
Status JudgeDeclared(const ModelSpec& spec, Trial& trial, const BatchTrial& batch,
                     std::vector<std::string>& said) {
  switch (batch.end) {
    case BatchTrial::End::kHolds:
      if (batch.chance.empty()) return {};
      said.push_back(fmt::format(
          "{}model '{}': max_batch_size is {}, and {} differs each time for the same input: "
          "its mean and spread are the same in the batch as alone, more was not compared; state 0 "
          "where its rows depend on each other, and the first dimension in all dims",
          AtBatch(spec), spec.name, spec.max_batch, batch.chance));
      return {};
    case BatchTrial::End::kUntried:
      said.push_back(fmt::format(
          "{}max_batch_size is {}, and whether its rows depend on each other is not known: {}; "
          "state 0 where they do, and the first dimension in all dims",
          AtBatch(spec), spec.max_batch, Untried(spec, batch.why)));
      return {};
    case BatchTrial::End::kSilent:
      said.push_back(fmt::format(
          "{}model '{}': max_batch_size is {}, and whether its rows depend on each other could "
          "not be tried: {}; state 0 where they do, and the first dimension in all dims",
          AtBatch(spec), spec.name, spec.max_batch, batch.why));
      return {};
    case BatchTrial::End::kMisshapen:
      if (trial.AlwaysMisshapen()) {
        return InvalidArgument(fmt::format(
            "{}max_batch_size: {}: model '{}' does not run in batches with any input that was "
            "tried: {}; state 0, and the first dimension in all dims",
            AtBatch(spec), spec.max_batch, spec.name, batch.why));
      }
      [[fallthrough]];
    default:
      said.push_back(fmt::format(
          "{}model '{}': max_batch_size is {}, and {}{}; state 0 where that must not "
          "be, and the first dimension in all dims",
          AtBatch(spec), spec.name, spec.max_batch,
          batch.end == BatchTrial::End::kDiffers ? "" : "not all batches run: ", batch.why));
      return {};
  }
}

}  // namespace

Expected<ModelHandle> LoadOnLane(ModelSpec& spec, Engine& engine, const LaneSpec& lane) {
  const std::uint64_t before = spec.contents;
  auto handle =
      WithMemory(fmt::format("model '{}'", spec.name), [&] { return engine.Load(spec, lane); });
  if (!handle || before == 0 || spec.contents == before) return handle;
  engine.Unload(*handle);
  return Fail(kFilesChanged, fmt::format("model '{}': its files have changed since it was loaded, "
                                         "or change just now; load it when all are there",
                                         spec.name));
}

Expected<std::vector<ModelHandle>> LoadOnLanes(ModelSpec& spec, Engine& engine,
                                               std::span<const LaneSpec> lanes) {
  std::vector<ModelHandle> handles;
  for (const LaneSpec& lane : lanes) {
    Expected<ModelHandle> handle = LoadOnLane(spec, engine, lane);
    if (!handle) {
      for (const ModelHandle loaded : handles) engine.Unload(loaded);
      return std::unexpected(std::move(handle.error()));
    }
    handles.push_back(*handle);
  }
  return handles;
}

Expected<TriedModel> LoadTried(ModelSpec spec, Engine& engine, std::span<const LaneSpec> lanes,
                               BatchId first) {
  const bool assumed = spec.max_batch < 0 || spec.batch_origin == BatchOrigin::kAssumed;
  if (assumed) spec.assumed_batch = spec.max_batch;
  const bool shown = !spec.found_shapes.empty();  // by a call
  ModelSpec declared = spec;
  TriedModel tried{.spec = std::move(spec)};
  auto handles = LoadOnLanes(tried.spec, engine, lanes);
  if (!handles) return std::unexpected(std::move(handles.error()));
  tried.handles = *std::move(handles);
  tried.spec.max_batch = std::max(tried.spec.max_batch, 0);
  if (assumed) tried.spec.batch_origin = BatchOrigin::kAssumed;
  if (!engine.traits().tries || tried.spec.exits.empty()) return tried;
  Trial trial(engine, tried.handles[0], tried.spec, first.value());
  if (tried.spec.max_batch == 0) {
    if (!trial.FindSizes()) {
      tried.ran = false;
      tried.said.push_back(Untried(tried.spec, trial.failure()));
      return tried;
    }
    tried.gave = trial.gave();
  } else {
    const BatchTrial batch =
        TryOptional(engine, tried.handles[0], tried.spec, first.value(), trial.TryBatch());
    if (assumed && batch.end != BatchTrial::End::kHolds) {
      Unload(engine, tried.handles);
      declared.contents = tried.spec.contents;
      return LoadPlain(declared, engine, lanes, first.value() + (std::uint64_t{1} << 19), batch);
    }
    if (assumed) {
      tried.said.push_back(fmt::format(
          "model '{}': no batch dimension was declared; unlike rows gave together what each gives "
          "alone{}{}, so max_batch_size is {}{}",
          tried.spec.name,
          batch.chance.empty() ? ""
                               : fmt::format(" (of {}, which differs each time for the same input, "
                                             "the mean and the spread; more was not compared)",
                                             batch.chance),
          batch.same.empty() ? ""
                             : fmt::format(" (of {}, which was the same for all rows that were "
                                           "made up, nothing is known)",
                                           batch.same),
          tried.spec.max_batch,
          declared.max_batch > 0 ? "; without the parameter 'batch' its config.pbtxt declares it"
                                 : ""));
    } else if (Status fine = JudgeDeclared(tried.spec, trial, batch, tried.said); !fine) {
      Unload(engine, tried.handles);
      return std::unexpected(std::move(fine.error()));
    }
    tried.untried = batch.end == BatchTrial::End::kUntried && !shown;
    const auto most = static_cast<std::size_t>(std::min(tried.spec.max_batch, kMostTogether));
    if (batch.end == BatchTrial::End::kHolds && batch.rows > 0 && batch.rows < most) {
      tried.rows =
          fmt::format("model '{}': a second was too short to try {} rows together; {} were tried",
                      tried.spec.name, most, batch.rows);
    }
    if (batch.end == BatchTrial::End::kHolds && batch.labels) {
      tried.said.push_back(fmt::format(
          "{}model '{}': its answers may be labels, in which a dependence on other rows seldom "
          "shows, and the time of a trial was up after {} draws; state max_batch_size 0 where its "
          "rows depend on each other",
          AtBatch(tried.spec), tried.spec.name, *batch.labels));
    }
    tried.gave = trial.gave();
  }
  tried.sizes = SizesText(tried.spec);
  return tried;
}

}  // namespace tactus
