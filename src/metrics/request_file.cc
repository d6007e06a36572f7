#include "metrics/request_file.h"

#include <cerrno>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "base/why_not_written.h"

namespace tactus {

Status WriteRequests(std::span<const RequestRecord> records, std::span<const Model> models,
                     Counting counting, const std::string& path) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << "model,priority,outcome,exit,batch,arrival_ns,started_ns,ended_ns,counted\n";
  std::string line;
  const auto nanos = [](TimePoint at) { return (at - kStart).count(); };
  for (const RequestRecord& record : records) {
    const Model& model = models[record.model];
    line.clear();
    fmt::format_to(std::back_inserter(line), "{},{},{},{},{},{},{},{},{}\n", model.name,
                   model.priority, Name(record.outcome), model.exits[record.exit].name,
                   record.batch, nanos(record.arrival), nanos(record.started), nanos(record.ended),
                   counting.Counts(record) ? 1 : 0);
    file << line;
  }
  file.close();
  if (file) return {};
  return Fail(ErrorCode::kUnavailable,
              fmt::format("{}: cannot write the requests: {}", path, WhyNotWritten(errno)));
}

}  // namespace tactus
