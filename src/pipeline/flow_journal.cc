#include "pipeline/flow_journal.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include <fmt/format.h>

namespace tactus {
namespace {

// In one line, whatever somebody called it.
std::string NameInLine(std::string name) {
  std::ranges::replace_if(
      name, [](char c) { return static_cast<unsigned char>(c) < ' '; }, '?');
  return name;
}

// By its name; -1: none.
std::int64_t IndexOf(const PipelineDeclaration& declaration, const std::string& name) {
  const auto found = std::ranges::find(declaration.stages, name, &StageDeclaration::name);
  if (found == declaration.stages.end()) return -1;
  return std::distance(declaration.stages.begin(), found);
}

}  // namespace

std::string FlowHeadText(std::string_view commit) {
  return fmt::format("{}{} {}\n", kFlowJournalHead, kFlowJournalFormat, commit);
}

std::string FlowText(std::uint32_t flow, const PipelineDeclaration& declaration,
                     const Pipeline& pipeline) {
  std::string text = fmt::format(
      "p {} {} {} {} {} {}\n", flow, pipeline.slo.count(), static_cast<int>(pipeline.deadlines),
      static_cast<int>(pipeline.answer), pipeline.stages.size(), NameInLine(pipeline.name));
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
    const StageDeclaration& stage = declaration.stages[s];
    const PipelineStage& built = pipeline.stages[s];
    text += fmt::format("s {} {} {} {} {} {} {} {} {}", flow, stage.demultiply ? 1 : 0,
                        stage.demultiply_most, stage.count, IndexOf(declaration, stage.gather),
                        built.deadline.count(), built.need.count(), built.least.count(),
                        stage.after.size());
    for (const std::string& name : stage.after) {
      text += fmt::format(" {}", IndexOf(declaration, name));
    }
    text += fmt::format(" {}\n", NameInLine(stage.name));
  }
  return text;
}

void AppendText(std::string& text, std::uint32_t flow, const FlowRecord& record) {
  char digits[24];
  const auto append = [&](std::int64_t value) {
    const auto written = std::to_chars(std::begin(digits), std::end(digits), value);
    text.push_back(' ');
    text.append(digits, written.ptr);
  };
  text.push_back(static_cast<char>(record.kind));
  append(flow);
  for (const std::int64_t value : record.values) append(value);
  text.push_back('\n');
}

std::string FlowEndText(std::uint64_t lines, bool complete) {
  return fmt::format("e {} {}\n", lines, complete ? 1 : 0);
}

}  // namespace tactus
