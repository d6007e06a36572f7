#include "server/kserve/trace_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/why_not_written.h"
#include "server/kserve/json_text.h"

namespace tactus {
namespace {

constexpr std::size_t kMostWaiting = 4096;
constexpr std::string_view kOpening = "[";
constexpr std::string_view kClosing = "\n]\n";

void AppendString(std::string& json, std::string_view name, std::string_view value) {
  json += fmt::format(",\"{}\":", name);
  AppendJsonString(json, value);
}

std::int64_t Nanoseconds(Trace::Instant instant) {
  return std::chrono::nanoseconds(instant.time_since_epoch()).count();
}

bool Lock(int file) { return flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

std::unexpected<Error> Taken(const std::string& path) {
  return Fail(ErrorCode::kUnavailable,
              fmt::format("{}: another process writes its traces there; name another", path));
}

Error NotCreated(const std::string& path, int failed) {
  return {failed == EEXIST ? ErrorCode::kAlreadyExists : ErrorCode::kUnavailable,
          fmt::format("{}: cannot create it: {}", path, std::strerror(failed))};
}

std::unexpected<Error> OfOption(const Error& error) {
  return Fail(error.code, fmt::format("--trace-file: {}", error.message));
}

// Whether nothing is lost with the file: it is empty, or has what a run without traces leaves.
bool HoldsNothing(const std::string& path) {
  const std::string empty = fmt::format("{}{}", kOpening, kClosing);
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(path, failed);
  if (failed || size == 0) return size == 0;
  if (size != empty.size()) return false;
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {}) == empty;
}

// The last run's traces.
Status KeepOld(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failed;
  if (!fs::is_regular_file(path, failed) || HoldsNothing(path)) return {};
  if (const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC); file >= 0) {
    const bool free = Lock(file);
    close(file);
    if (!free) return Taken(path);
  }
  fs::rename(path, path + ".old", failed);
  if (!failed) return {};
  return Fail(ErrorCode::kUnavailable,
              fmt::format("{}: the traces of the last run cannot be kept as {}.old ({}): move "
                          "them, or name another",
                          path, path, failed.message()));
}

}  // namespace

std::string TraceJson(const Trace& trace) {
  std::string json = fmt::format(R"({{"id":{})", trace.id);
  AppendString(json, "model_name", trace.model);
  json += fmt::format(R"(,"model_version":{})", trace.version);
  if (!trace.request_id.empty()) AppendString(json, "request_id", trace.request_id);
  AppendString(json, "outcome", Name(trace.outcome));
  if (trace.batch > 0) json += fmt::format(R"(,"batch":{})", trace.batch);
  if (!trace.exit.empty()) AppendString(json, "exit", trace.exit);
  if (trace.emulated) json += R"(,"emulated":true)";
  json += fmt::format("}},\n{{\"id\":{},\"timestamps\":[", trace.id);
  const auto add = [&](std::string_view name, Trace::Instant at) {
    json += fmt::format(R"({{"name":"{}","ns":{}}},)", name, Nanoseconds(at));
  };
  add("REQUEST_START", trace.received);
  add("QUEUE_START", trace.queued);
  if (trace.compute) add("COMPUTE_START", trace.compute->start);
  if (trace.compute) add("COMPUTE_END", trace.compute->end);
  add("REQUEST_END", trace.answered);
  json.back() = ']';
  json += '}';
  return json;
}

TraceFile::Array::Array(Array&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      end_(other.end_),
      traces_(other.traces_) {}

TraceFile::Array& TraceFile::Array::operator=(Array&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(end_, other.end_);
  std::swap(traces_, other.traces_);
  return *this;
}

TraceFile::Array::~Array() {
  if (file_ >= 0) close(file_);
}

Status TraceFile::CheckFree(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0 && errno == ENOENT) return {};
  if (file < 0) return OfOption(NotCreated(path, errno));
  const bool free = Lock(file);
  close(file);
  if (free) return {};
  return OfOption(Taken(path).error());
}

// What the file holds is at most an empty array.
Expected<TraceFile::Array> TraceFile::Array::Create(const std::string& path, int flags) {
  // A pipe without a reader is an error, and not waited for.
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | flags, 0644);
  if (file < 0) {
    return std::unexpected(NotCreated(path, errno));
  }
  Array array(path, file);
  if (!Lock(file)) return Taken(path);
  if (Status begun = array.Write(fmt::format("{}{}", kOpening, kClosing), 0); !begun) {
    if ((flags & O_EXCL) != 0) unlink(path.c_str());  // or each try would leave one
    return std::unexpected(std::move(begun.error()));
  }
  array.end_ = kOpening.size();
  return array;
}

Status TraceFile::Array::Write(std::string_view text, std::int64_t offset) {
  while (!text.empty()) {  // the next write says why one stopped midway
    const ssize_t written = pwrite(file_, text.data(), text.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("{}: cannot write it: {}", path_, WhyNotWritten(errno)));
    }
    text.remove_prefix(static_cast<std::size_t>(written));
    offset += written;
  }
  return {};
}

Status TraceFile::Array::Append(std::string_view objects) {
  std::string text = traces_ == 0 ? "\n" : ",\n";
  text += objects;
  const auto size = static_cast<std::int64_t>(text.size());
  text += kClosing;
  if (Status written = Write(text, end_); !written) {
    // These bytes were there before: there is room for them.
    if (Write(kClosing, end_)) {
      (void)!ftruncate(file_, end_ + static_cast<std::int64_t>(kClosing.size()));
    }
    return written;
  }
  end_ += size;
  ++traces_;
  return {};
}

Expected<std::unique_ptr<TraceFile>> TraceFile::Create(
    const std::string& path, std::function<void(const std::string&)> say) {
  if (Status kept = KeepOld(path); !kept) return OfOption(kept.error());
  auto whole = Array::Create(path, 0);
  if (!whole) return OfOption(whole.error());
  return std::unique_ptr<TraceFile>(new TraceFile(path, *std::move(whole), std::move(say)));
}

TraceFile::TraceFile(std::string path, Array whole, std::function<void(const std::string&)> say)
    : path_(std::move(path)),
      say_(std::move(say)),
      whole_(std::move(whole)),
      thread_([this] { Run(); }) {}

TraceFile::~TraceFile() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (lost_ > 0) say_(fmt::format("{}: {} traces were lost", path_, lost_));
}

void TraceFile::Add(Trace trace) {
  bool full = false;
  {
    const std::lock_guard lock(mutex_);
    full = waiting_.size() == kMostWaiting;
    if (!full) waiting_.push_back(std::move(trace));
  }
  if (full) return Lose(1, fmt::format("{}: the disk is too slow for so many traces", path_));
  changed_.notify_all();
}

void TraceFile::Flush() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.empty() && !writing_; });
}

std::uint64_t TraceFile::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void TraceFile::Lose(std::uint64_t traces, const std::string& why) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = lost_ == 0;
    lost_ += traces;
  }
  if (first) say_(fmt::format("{}; serving goes on without these traces", why));
}

void TraceFile::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Trace trace = std::move(waiting_.front());
    waiting_.pop_front();
    writing_ = true;
    lock.unlock();
    if (const Status written = Write(trace); !written) Lose(1, written.error().message);
    lock.lock();
    writing_ = false;
    changed_.notify_all();
  }
}

Status TraceFile::Write(const Trace& trace) {
  if (trace.log_frequency == 0) return whole_.Append(TraceJson(trace));
  if (!numbered_ || numbered_->traces() >= trace.log_frequency) {
    if (Status opened = OpenNext(); !opened) return opened;
  }
  return numbered_->Append(TraceJson(trace));
}

Status TraceFile::OpenNext() {
  for (;; ++next_) {
    auto array = Array::Create(fmt::format("{}.{}", path_, next_), O_EXCL);
    if (array) {
      numbered_ = *std::move(array);
      ++next_;
      return {};
    }
    if (array.error().code != ErrorCode::kAlreadyExists) {
      return std::unexpected(std::move(array.error()));
    }
  }
}

}  // namespace tactus
