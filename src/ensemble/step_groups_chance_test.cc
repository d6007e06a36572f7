// Pipelines drawn at random, with places drawn at random: what a call is answered must not depend
// on which of its steps go as one, nor on where a group is run.
#include <cstdint>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "ensemble/scripted_steps_test.h"
#include "pipeline/build.h"
#include "service/plain_service_test.h"
#include "service/step_group.h"

namespace tactus {
namespace {

int Drawn(Rng& chance, int below) { return static_cast<int>(chance.Uniform() * below); }

// A pipeline of steps that read the call's input or earlier steps' answers, some of which make
// rows.
class DrawnPipeline {
 public:
  explicit DrawnPipeline(Rng& chance) {
    const int batching = Drawn(chance, 3);  // none, all, some
    const int steps = 2 + Drawn(chance, 6);
    declared.pipeline.deadlines = DeadlineRule::kRedivide;
    for (int s = 0; s < steps; ++s) {
      StageDeclaration step{.name = "s" + std::to_string(s)};
      step.model = "m" + step.name;
      step.demultiply = chance.Uniform() < 0.3;
      step.demultiply_most = 3;
      const int reads = 1 + Drawn(chance, 2);
      for (int r = 0; r < reads; ++r) {
        const int maker = s - 1 - std::min(Drawn(chance, 3), Drawn(chance, 3));
        const std::string as = maker < 0 ? "x" : "t" + std::to_string(maker);
        if (r > 0 && step.inputs[0].as == as) continue;
        step.inputs.push_back({"i" + std::to_string(r), as});
      }
      step.outputs = {{"o", "t" + std::to_string(s)}};
      const int opener = Drawn(chance, 2 * steps);
      if (opener < s && declared.pipeline.stages[static_cast<std::size_t>(opener)].demultiply) {
        step.gather = "s" + std::to_string(opener);
      }
      declared.pipeline.stages.push_back(std::move(step));
      batched.push_back(batching == 1 || (batching == 2 && chance.Uniform() < 0.5));
      places.push_back(std::string(1, "-aab"[Drawn(chance, 4)]));
      if (places.back() == "-") places.back().clear();
    }
  }

  // Its models, whose tensors are such as come; false where the draw makes no pipeline.
  bool Complete() {
    declared.model = FloatModel("drawn", 0, {{"x", DataType::kFp32, {2}}}, {});
    declared.model.slo = Millis(100);
    auto& stages = declared.pipeline.stages;
    const auto is_read = [&](const std::string& as) {
      return std::ranges::any_of(stages, [&](const StageDeclaration& each) {
        return std::ranges::find(each.inputs, as, &TensorLink::as) != each.inputs.end();
      });
    };
    if (!is_read("x")) return false;
    EnsembleDeclaration linked = declared;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const std::string as = "t" + std::to_string(s);
      if (!is_read(as) || s % 3 == 0) linked.model.outputs.push_back({as, DataType::kFp32, {}});
    }
    if (!LinkStages(linked)) return false;
    const auto graph = PipelineGraph::Make(linked.pipeline.stages);
    if (!graph) return false;
    const auto levels = PipelineLevels::Make(*graph, linked.pipeline.stages);
    if (!levels) return false;
    for (std::size_t s = 0; s < stages.size(); ++s) MakeModel(s, linked, *levels);
    for (TensorSpec& each : linked.model.outputs) {
      const auto maker = static_cast<std::size_t>(std::stoi(each.name.substr(1)));
      const bool of_rows = levels->of(Stage(maker)) != PipelineLevels::kRoot;
      each.dims = of_rows ? Gathered(maker) : models[maker].outputs[0].dims;
      declared.model.outputs.push_back(each);
    }
    return true;
  }

  EnsembleDeclaration declared;
  std::vector<bool> batched;
  std::vector<ModelSpec> models;
  std::vector<std::string> places;

 private:
  static StageId Stage(std::size_t s) { return StageId{static_cast<StageId::rep>(s)}; }

  Shape Gathered(std::size_t maker) const {
    Shape dims = models[maker].outputs[0].dims;
    if (batched[maker]) dims.erase(dims.begin());
    dims.insert(dims.begin(), -1);
    return dims;
  }
  // As tensors.cc has it, said in another way: by how deep both lie.
  Shape Arriving(std::size_t reader, std::size_t maker, const PipelineLevels& levels) const {
    const LevelId meeting = levels.Meeting(Stage(reader), Stage(maker));
    if (levels.of(Stage(maker)) != meeting) return Gathered(maker);
    Shape dims = models[maker].outputs[0].dims;
    const LevelId opened = levels.opened_by(Stage(maker));
    const auto path = levels.path(levels.of(Stage(reader)));
    if (!opened.valid() || std::ranges::find(path, opened) == path.end()) return dims;
    dims.erase(dims.begin(), dims.begin() + (batched[maker] ? 2 : 1));
    if (batched[reader]) dims.insert(dims.begin(), 1);
    return dims;
  }
  void MakeModel(std::size_t s, const EnsembleDeclaration& linked, const PipelineLevels& levels) {
    const StageDeclaration& step = linked.pipeline.stages[s];
    ModelSpec model = FloatModel(step.model, batched[s] ? 8 : 0, {}, {});
    for (const TensorLink& link : step.inputs) {
      const Shape dims =
          link.as == "x"
              ? Shape{2}
              : Arriving(s, static_cast<std::size_t>(std::stoi(link.as.substr(1))), levels);
      model.inputs.push_back({link.tensor, DataType::kFp32, dims});
    }
    Shape out = step.demultiply ? Shape{-1, 2} : Shape{2};
    if (batched[s]) out.insert(out.begin(), -1);
    model.outputs = {{"o", DataType::kFp32, out}};
    models.push_back(std::move(model));
  }
};

// Models whose answers are made of all that they are asked, at once. Groups run as `way` says.
class Computing final : public PlainService {
 public:
  Expected<std::shared_ptr<const ModelSpec>> Find(std::string_view model,
                                                  std::int64_t) const override {
    const auto found = models.find(model);
    if (found == models.end()) return NotFound("no such model");
    return found->second;
  }
  CallId Infer(InferCall&& call) override {
    if (call.group != nullptr) {
      ++groups;
      run_group(std::move(call));
      return 0;
    }
    std::uint64_t hash = 1469598103934665603U;
    for (const char c : call.model->name) hash = (hash ^ static_cast<std::uint64_t>(c)) * 31;
    for (const InputTensor& each : call.inputs) {
      for (const std::int64_t d : each.shape) hash = (hash ^ static_cast<std::uint64_t>(d)) * 131;
      for (const std::byte b : each.data) hash = (hash ^ std::to_integer<unsigned>(b)) * 1099511;
    }
    Shape shape = call.model->outputs[0].dims;
    if (call.model->max_batch > 0) shape[0] = 1;
    for (std::int64_t& d : shape) {
      if (d < 0) d = static_cast<std::int64_t>(hash >> 20 & 3);
    }
    auto values = std::make_shared<std::vector<float>>();
    for (std::int64_t i = 0; i < ElementCount(shape).value_or(0); ++i) {
      values->push_back(static_cast<float>(hash >> 8 & 0xffff) + static_cast<float>(i));
    }
    InferReply reply;
    reply.model = call.model;
    OutputTensor out{"o", DataType::kFp32, shape, {}};
    if (!values->empty()) out.parts = {BytesIn(*values)};
    reply.outputs = {std::move(out)};
    reply.storage = values;
    call.reply(std::move(reply));
    return 0;
  }

  std::map<std::string, std::shared_ptr<const ModelSpec>, std::less<>> models;
  std::function<void(InferCall&&)> run_group;
  int groups = 0;
};

struct Answer {
  std::string error;
  std::vector<std::pair<Shape, std::vector<float>>> outputs;
  bool operator==(const Answer&) const = default;
};

// What the pipeline answers with groups where it may have them (`way` 1: each run here, 2: by its
// steps' routes, 3: entered as on another node), or without (0).
Answer Ask(const DrawnPipeline& drawn, int way, int& groups) {
  Computing steps;
  for (const ModelSpec& each : drawn.models) {
    steps.models[each.name] = std::make_shared<const ModelSpec>(each);
  }
  std::map<std::string, EnsembleDeclaration> told;
  EnsembleOptions options;
  const std::chrono::steady_clock::time_point now{std::chrono::hours(1)};
  options.clock = [now] { return now; };
  if (way > 0) options.places = [&](const PipelineDeclaration&) { return drawn.places; };
  options.places_number = [] { return std::uint64_t{1}; };
  options.describe = [&](const EnsembleDeclaration& inner) {
    told[inner.model.name] = inner;
    return Expected<std::string>(inner.model.name);
  };
  options.read_described = [&](std::string_view text) -> Expected<EnsembleDeclaration> {
    return told.at(std::string(text));
  };
  EnsembleFolders folders;
  folders.list = [] { return std::vector<std::string>{"drawn"}; };
  folders.holds = [](const std::string&, const std::string&) { return true; };
  folders.read = [&](const std::string&,
                     const std::string&) -> Expected<std::vector<EnsembleDeclaration>> {
    EnsembleDeclaration declared = drawn.declared;
    declared.pipeline.name = "drawn";
    declared.pipeline.slo = Millis(100);
    if (Status linked = LinkStages(declared); !linked) return std::unexpected(linked.error());
    return std::vector{declared};
  };
  Answer answer;
  std::string said;
  options.log = [&](const std::string& line) { said = line; };
  EnsembleService service(steps, std::move(options), std::move(folders));
  steps.run_group = [&](InferCall&& call) {
    const auto group = std::move(call.group);
    call.group = nullptr;
    if (way == 3) {
      call.model = *service.Enter(group->described);
      service.Infer(std::move(call));
      return;
    }
    group->run(std::move(call), way == 1 ? StepGroup::Where::kHere : StepGroup::Where::kByRoutes);
  };
  service.Open({"*"});
  const auto model = service.Find("drawn", -1);
  if (!model) return {model.error().message, {}};
  const std::vector<float> values{3, 4};
  InferCall call;
  call.model = *model;
  call.inputs = {{"x", DataType::kFp32, {2}, BytesIn(values)}};
  call.received = now;
  call.reply = [&](InferReply&& reply) {
    if (!reply.status) answer.error = "failed";  // the step's name differs
    for (const OutputTensor& each : reply.outputs) {
      answer.outputs.emplace_back(each.shape, FloatsIn(each));
    }
  };
  service.Infer(std::move(call));
  groups += steps.groups;
  EXPECT_EQ(said, "") << "what may be a group can be one";
  EXPECT_EQ(service.unfinished(), 0u);
  return answer;
}

TEST(StepGroupsChance, AnswersDoNotDependOnWhichStepsGoAsOne) {
  int grouped = 0;
  int answered = 0;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    Rng chance = Rng::Stream(seed, "pipeline");
    DrawnPipeline drawn(chance);
    if (!drawn.Complete()) continue;
    int none = 0;
    const Answer plain = Ask(drawn, 0, none);
    if (!plain.error.empty()) continue;  // two dims in one tensor, say
    ++answered;
    for (int way = 1; way <= 3; ++way) {
      const Answer with = Ask(drawn, way, grouped);
      ASSERT_EQ(with, plain) << "seed " << seed << ", way " << way << ": " << with.error;
    }
  }
  // The draws must not have become such that nothing is tried.
  EXPECT_GT(answered, 500);
  EXPECT_GT(grouped, 500);
}

}  // namespace
}  // namespace tactus
