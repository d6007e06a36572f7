#include "ensemble/pipeline_journal.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/why_not_written.h"

namespace tactus {

class PipelineJournal::OfOne final : public FlowJournal {
 public:
  OfOne(PipelineJournal& journal, std::uint32_t flow) : journal_(journal), flow_(flow) {}
  void Append(const FlowRecord& record) override { journal_.Append(flow_, record); }

 private:
  PipelineJournal& journal_;
  const std::uint32_t flow_;
};

Expected<std::unique_ptr<PipelineJournal>> PipelineJournal::Create(
    const std::filesystem::path& path, std::string_view commit, std::size_t most) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("{}: cannot write the journal of pipelines; is the folder there, and "
                            "writable?",
                            path.string()));
  }
  std::unique_ptr<PipelineJournal> journal(
      new PipelineJournal(std::move(file), path.string(), most));
  journal->waiting_ = FlowHeadText(commit);
  return journal;
}

bool PipelineJournal::HasRoom() {
  if (waiting_.size() >= most_) stopped_ = true;
  return !stopped_ && !closed_;
}

std::unique_ptr<FlowJournal> PipelineJournal::Begin(const PipelineDeclaration& declaration,
                                                    const Pipeline& pipeline) {
  const std::lock_guard lock(mutex_);
  if (HasRoom()) {
    const std::string text = FlowText(flows_, declaration, pipeline);
    lines_ += static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
    waiting_ += text;
  }
  return std::make_unique<OfOne>(*this, flows_++);
}

void PipelineJournal::Append(std::uint32_t flow, const FlowRecord& record) {
  const std::lock_guard lock(mutex_);
  if (!HasRoom()) return;
  AppendText(waiting_, flow, record);
  ++lines_;
}

Status PipelineJournal::Write(const std::string& text) {
  file_.write(text.data(), static_cast<std::streamsize>(text.size()));
  file_.flush();  // whoever reads along has what is said so far
  if (!file_ && failed_ == 0) failed_ = errno;
  if (file_) return {};
  return Fail(ErrorCode::kUnavailable,
              fmt::format("{}: writing the journal failed: {}", path_, WhyNotWritten(failed_)));
}

Status PipelineJournal::Flush() {
  const std::lock_guard in_order(file_mutex_);
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    text.swap(waiting_);
  }
  return Write(text);
}

Status PipelineJournal::Close() {
  Status flushed = Flush();
  const std::lock_guard in_order(file_mutex_);
  std::string rest;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return flushed;
    closed_ = true;
    rest = std::move(waiting_) + FlowEndText(lines_, !stopped_);
  }
  Status written = Write(rest);
  file_.close();
  return flushed ? written : flushed;
}

bool PipelineJournal::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

}  // namespace tactus
