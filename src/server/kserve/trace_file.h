// Traces of calls on disk, as Triton writes them: an array of JSON in which each trace has two
// objects,
//   {"id":1,"model_name":"m","model_version":1,"request_id":"r","outcome":"met","batch":4,
//    "exit":"final"}
//   {"id":1,"timestamps":[{"name":"REQUEST_START","ns":1},...]}
// of which outcome, batch, exit and emulated are ours.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/expected.h"
#include "server/kserve/trace.h"

namespace tactus {

// Both objects, with a comma and a line's end between them.
std::string TraceJson(const Trace& trace);

// A thread of its own writes: nobody who adds a trace waits for a disk. Each file is a whole array
// after each trace. Traces with a log_frequency N go to FILE.0, FILE.1, ..., N in each, and leave
// out names that exist; the others to FILE.
class TraceFile final : public TraceSink {
 public:
  // An error where another process writes its traces there, or what is there cannot be written.
  // Changes nothing.
  static Status CheckFree(const std::string& path);
  // Creates FILE; one that is there, and has traces, becomes FILE.old, in place of an older one.
  // `say` is told of the first trace that could not be written and, at the end, of how many were
  // lost; it must not throw.
  static Expected<std::unique_ptr<TraceFile>> Create(const std::string& path,
                                                     std::function<void(const std::string&)> say);
  ~TraceFile() override;  // what was added is written by then

  // Drops the trace, and counts it as lost, if thousands wait to be written.
  void Add(Trace trace) override;
  // Returns when all that was added is written, or lost.
  void Flush();
  std::uint64_t lost() const;

 private:
  // An array of JSON, opened for writing.
  class Array {
   public:
    static Expected<Array> Create(const std::string& path, int flags);
    Array(Array&& other) noexcept;
    Array& operator=(Array&& other) noexcept;
    ~Array();

    // On an error the file is as before.
    Status Append(std::string_view objects);
    std::uint32_t traces() const { return traces_; }

   private:
    Array(std::string path, int file) : path_(std::move(path)), file_(file) {}
    Status Write(std::string_view text, std::int64_t offset);

    std::string path_;
    int file_ = -1;
    std::int64_t end_ = 0;  // of the last object: what closes the array follows
    std::uint32_t traces_ = 0;
  };

  TraceFile(std::string path, Array whole, std::function<void(const std::string&)> say);
  void Run();
  Status Write(const Trace& trace);
  Status OpenNext();
  void Lose(std::uint64_t traces, const std::string& why);

  const std::string path_;
  const std::function<void(const std::string&)> say_;
  // Only the writing thread touches these.
  Array whole_;                    // FILE
  std::optional<Array> numbered_;  // FILE.N, the newest
  std::uint64_t next_ = 0;         // the least N that may be free

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Trace> waiting_;
  bool writing_ = false;
  bool stop_ = false;
  std::uint64_t lost_ = 0;
  std::thread thread_;
};

}  // namespace tactus
