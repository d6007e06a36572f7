// What a pipeline is declared to be, wherever that is written: [[pipelines]] of a scenario, or
// ensemble_scheduling of a config.pbtxt. No file, no protobuf, no model ids.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/serving_time.h"

namespace tactus {

// A tensor of a stage's model, by the name that it has in the pipeline.
struct TensorLink {
  std::string tensor;  // the model's
  std::string as;      // the pipeline's: one name, one maker, as many readers as like
};

struct StageDeclaration {
  std::string name;
  std::vector<std::string> after = {};  // whose answers it needs; none: it starts with the request
  std::string model = {};
  int count = 1;             // runs at once, all alike; whoever is after it waits for all of them
  bool demultiply = false;   // its answer has rows, and the stages after it run once for each
  int demultiply_most = 64;  // rows beyond these are cut
  std::string gather = {};   // the stage that demultiplies all of whose rows it waits for
  Duration budget{};         // 0: as the rule says
  // For pipelines whose tensors somebody passes on; simulated ones have none.
  std::int64_t version = -1;  // of the model; below 0: the latest
  std::vector<TensorLink> inputs = {};
  std::vector<TensorLink> outputs = {};
  std::string place = {};  // where it is written, for errors: "file:line:column"
  // What whoever wrote it calls it, for errors: a stage of a scenario, a step of an ensemble.
  std::string_view noun = "stage";
};

// How the SLO becomes deadlines of stages.
enum class DeadlineRule {
  kLatency,   // fixed, in proportion to latency, or as the budgets say where there are any
  kEqual,     // fixed, the same for each stage along the path of most stages
  kWhole,     // every stage has until the SLO
  kRedivide,  // what is left when a stage starts, in proportion to what it and those behind need
  kPersist,   // so too, and what expires in its part is run again with all that those behind it
              // can spare: a request is given up only where not even the quickest path fits
  kSpare,     // what those behind it can spare: all that is left but what they need
};

// When a request is answered whose rows are not all in time.
enum class AnswerRule {
  kAll,   // never: it is dropped with the first one
  kEach,  // with those that are
};

struct PipelineDeclaration {
  std::string name;
  Duration slo{};  // from the request's arrival to its last stage's last answer
  DeadlineRule deadlines = DeadlineRule::kLatency;
  AnswerRule answer = AnswerRule::kAll;
  std::vector<StageDeclaration> stages;
  std::string_view noun = "pipeline";  // as of a stage: a pipeline, or an ensemble
};

}  // namespace tactus
