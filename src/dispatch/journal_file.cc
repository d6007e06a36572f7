#include "dispatch/journal_file.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "base/fnv.h"
#include "base/whole_file.h"
#include "base/why_not_written.h"
#include "dispatch/journal_json.h"

namespace tactus {
namespace {

static_assert(std::endian::native == std::endian::little, "records are written as they lie");

constexpr std::string_view kMagic = "TACTUSJ3";
constexpr std::string_view kAnyMagic = kMagic.substr(0, kMagic.size() - 1);
// The same without records of which lane holds which model (kHolding), but for a few that a program
// between two releases wrote.
constexpr char kOlderFormat = '2';
constexpr std::size_t kRecordsInChunk = 8192;

template <class Integer>
void Put(std::string& out, Integer value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

// Takes values from the front of the bytes; nothing once they run out.
class Source {
 public:
  explicit Source(std::string_view bytes) : all_(bytes) {}

  template <class Integer>
  std::optional<Integer> Take() {
    const auto bytes = TakeBytes(sizeof(Integer));
    if (!bytes) return {};
    Integer value;
    std::memcpy(&value, bytes->data(), sizeof value);
    return value;
  }
  std::optional<std::string_view> TakeBytes(std::size_t n) {
    if (n > all_.size() - at_) return {};
    at_ += n;
    return all_.substr(at_ - n, n);
  }
  std::size_t at() const { return at_; }
  bool empty() const { return at_ == all_.size(); }

 private:
  std::string_view all_;
  std::size_t at_ = 0;
};

// What every record must satisfy, whatever its neighbours say.
bool Sound(const JournalRecord& record) {
  constexpr std::int64_t kMost = kNever.time_since_epoch().count();
  for (const TimePoint at : {record.at, record.deadline, record.ended}) {
    const std::int64_t ns = at.time_since_epoch().count();
    if (ns < -kMost || ns > kMost) return false;
  }
  return record.kind <= JournalRecord::Kind::kHolding;
}

class Parser {
 public:
  Parser(std::string_view bytes, std::string_view where, bool verify)
      : bytes_(bytes), source_(bytes), where_(where), verify_(verify) {}

  Expected<JournalFile> Parse() {
    const auto magic = source_.TakeBytes(kMagic.size());
    if (!magic || !magic->starts_with(kAnyMagic))
      return Bad("is no Tactus journal; --journal FILE of serve and simulate writes one");
    if (*magic != kMagic && magic->back() != kOlderFormat) {
      return Bad(fmt::format(
          "is a journal of format {}, and this program reads formats {} and {}; replay it with the "
          "tactus that wrote it (its header names the commit), or record it again",
          magic->back(), kOlderFormat, kMagic.back()));
    }
    for (;;) {
      const auto letter = source_.Take<char>();
      if (!letter) return WithoutEnd();
      if (*letter == 'E') return End();
      if (!kSections.contains(*letter)) {
        return Bad(fmt::format("is damaged at byte {}: no such section", source_.at() - 1));
      }
      const auto size = source_.Take<std::uint32_t>();
      if (!size) return WithoutEnd();
      const std::size_t unit = *letter == 'R' ? sizeof(JournalRecord) : 1;
      const auto body = source_.TakeBytes(*size * unit);
      if (!body) return WithoutEnd();
      if (Status read = Section(*letter, *body); !read) return std::unexpected(read.error());
    }
  }

 private:
  static constexpr std::string_view kSections = "HDPLR";

  Status Section(char letter, std::string_view body) {
    if (letter == 'H') return Header(body);
    if (letter != 'D' && journal_.changes.empty()) {
      return Bad("its first served_models does not stand before all else");
    }
    switch (letter) {
      case 'D':
        return Deployed(body);
      case 'P':
        return Planned(body);
      case 'L':
        return Reshaped(body);
      default:
        return Records(body);
    }
  }
  Status Header(std::string_view body) {
    if (!journal_.header.lanes.empty()) return Bad("has two headers");
    auto header = ParseJournalHeader(body);
    if (!header) return Bad("its header: " + header.error().message);
    journal_.header = std::move(*header);
    for (const LaneSpec& lane : journal_.header.lanes) {
      classes_ = std::max(classes_, std::size_t{lane.lane_class.value()} + 1);
    }
    return {};
  }
  Status Deployed(std::string_view body) {
    if (journal_.header.lanes.empty()) return Bad("its header is missing");
    auto served_models =
        ParseServedModels(body, classes_, deployed_ ? deployed_->models.size() : 0);
    if (!served_models) return Bad("the served models: " + served_models.error().message);
    deployed_ = *served_models;
    journal_.changes.push_back({journal_.records.size(), std::move(*served_models)});
    return {};
  }
  Status Planned(std::string_view body) {
    auto plan = ParsePlan(body);
    if (!plan) return Bad("a plan: " + plan.error().message);
    journal_.changes.push_back({journal_.records.size(), std::move(*plan)});
    return {};
  }
  Status Reshaped(std::string_view body) {
    const auto share = ParseLaneShare(body, journal_.header.lanes.size());
    if (!share) return Bad("a lane's share: " + share.error().message);
    classes_ = std::max(classes_, std::size_t{share->lane_class.value()} + 1);
    if (!deployed_->models.empty() &&
        classes_ > static_cast<std::size_t>(deployed_->profile.lane_classes())) {
      return Bad("a lane's share: its class is not in the profile");
    }
    journal_.changes.push_back({journal_.records.size(), *share});
    return {};
  }
  Status Records(std::string_view body) {
    const std::size_t first = journal_.records.size();
    journal_.records.resize(first + body.size() / sizeof(JournalRecord));
    if (!body.empty()) std::memcpy(&journal_.records[first], body.data(), body.size());
    for (std::size_t i = first; i < journal_.records.size(); ++i) {
      if (!Sound(journal_.records[i]))
        return Bad(fmt::format("is damaged: record {} is not a record", i));
    }
    return {};
  }
  Expected<JournalFile> End() {
    const std::string_view before = bytes_.substr(0, source_.at() - 1);
    const auto count = source_.Take<std::uint64_t>();
    const auto complete = source_.Take<std::uint8_t>();
    const auto checksum = source_.Take<std::uint64_t>();
    if (!checksum) return WithoutEnd();
    if (!source_.empty()) return Bad("is damaged: bytes follow its end");
    if (journal_.changes.empty()) return Bad("holds no served_models");
    if (*count != journal_.records.size()) return Bad("is damaged: records are missing");
    if (verify_ && *checksum != Fnv1a(before)) {
      return Bad("is damaged: its checksum does not fit its contents");
    }
    journal_.complete = *complete != 0;
    return std::move(journal_);
  }
  std::unexpected<Error> Bad(std::string_view what) const {
    return InvalidArgument(fmt::format("{}: {}", where_, what));
  }
  // The sections so far, of a writer that was killed.
  Expected<JournalFile> WithoutEnd() {
    if (HasEnd()) return Bad("is damaged: a section goes beyond its end");
    if (journal_.changes.empty()) {
      return Bad("was cut off before its first served_models: nothing was decided yet");
    }
    journal_.complete = false;
    journal_.cut_off = true;
    return std::move(journal_);
  }
  // Whether its last bytes look like what Close writes.
  bool HasEnd() const {
    constexpr std::size_t kEnd = 1 + 8 + 1 + 8;
    if (bytes_.size() < kEnd) return false;
    const std::string_view end = bytes_.substr(bytes_.size() - kEnd);
    return end[0] == 'E' && (end[9] == 0 || end[9] == 1);
  }

  const std::string_view bytes_;
  Source source_;
  const std::string_view where_;
  const bool verify_;
  std::size_t classes_ = 0;  // that its lanes are of, so far
  std::shared_ptr<const ServedModels> deployed_;
  JournalFile journal_;
};

}  // namespace

Expected<std::unique_ptr<JournalWriter>> JournalWriter::Create(const std::filesystem::path& path,
                                                               const JournalHeader& header,
                                                               WhenFull when_full,
                                                               std::size_t records) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("{}: cannot write the journal; is the folder there, and writable?",
                            path.string()));
  }
  std::unique_ptr<JournalWriter> writer(
      new JournalWriter(std::move(file), path.string(), when_full, records));
  const std::lock_guard lock(writer->mutex_);
  writer->Write(kMagic);
  writer->WriteSection('H', ToJson(header));
  return writer;
}

JournalWriter::JournalWriter(std::ofstream file, std::string path, WhenFull when_full,
                             std::size_t records)
    : path_(std::move(path)),
      when_full_(when_full),
      ring_(records),
      file_(std::move(file)),
      checksum_(kFnvStart) {
  chunk_.reserve(kRecordsInChunk * sizeof(JournalRecord));
}

void JournalWriter::Append(const JournalRecord& record) noexcept {
  if (stopped()) return;
  if (!ring_.TryPush(record)) {
    if (when_full_ == WhenFull::kStop) return stopped_.store(true, std::memory_order_relaxed);
    (void)Flush();  // the error is kept for whoever closes
    CHECK(ring_.TryPush(record), "a flush empties the ring");
  }
  ++appended_;
}

void JournalWriter::Configured(const ServedModels& served_models) {
  Note('D', ToJson(served_models));
}

void JournalWriter::Adopted(const Plan* plan) { Note('P', ToJson(plan)); }

void JournalWriter::Reshaped(const LaneShare& share) { Note('L', ToJson(share)); }

void JournalWriter::Note(char letter, std::string json) {
  const std::lock_guard lock(mutex_);
  if (!stopped()) changes_.push_back({appended_, letter, std::move(json)});
}

Status JournalWriter::Flush() {
  const std::lock_guard lock(mutex_);
  return FlushLocked();
}

Status JournalWriter::FlushLocked() {
  std::size_t change = 0;
  for (bool more = true; more;) {
    for (; change < changes_.size() && changes_[change].at == written_; ++change) {
      WriteSection(changes_[change].letter, changes_[change].json);
    }
    // Up to the next change, or as much as a chunk holds.
    std::uint64_t limit = kRecordsInChunk;
    if (change < changes_.size()) limit = std::min(limit, changes_[change].at - written_);
    chunk_.clear();
    std::uint32_t n = 0;
    for (JournalRecord record; n < limit && ring_.TryPop(record); ++n) {
      chunk_.append(reinterpret_cast<const char*>(&record), sizeof record);
    }
    more = n > 0;
    if (!more) break;
    std::string head("R");
    Put(head, n);
    Write(head);
    Write(chunk_);
    written_ += n;
  }
  changes_.erase(changes_.begin(), changes_.begin() + static_cast<std::ptrdiff_t>(change));
  file_.flush();  // else a full disk would show when a buffer is full, or at the end
  NoteFailure();
  return Result();
}

Status JournalWriter::Close() {
  const std::lock_guard lock(mutex_);
  (void)FlushLocked();
  std::string end("E");
  Put(end, written_);
  Put(end, static_cast<std::uint8_t>(!stopped()));
  Put(end, checksum_);
  Write(end);
  file_.close();
  NoteFailure();
  return Result();
}

void JournalWriter::Write(std::string_view bytes) {
  checksum_ = Fnv1a(bytes, checksum_);
  file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  NoteFailure();
}

void JournalWriter::NoteFailure() {
  if (!file_ && failed_ == 0) failed_ = errno;
}

void JournalWriter::WriteSection(char letter, std::string_view json) {
  std::string head(1, letter);
  Put(head, static_cast<std::uint32_t>(json.size()));
  Write(head);
  Write(json);
}

Status JournalWriter::Result() const {
  if (file_) return {};
  return Fail(ErrorCode::kUnavailable,
              fmt::format("{}: writing the journal failed: {}", path_, WhyNotWritten(failed_)));
}

Expected<JournalFile> ParseJournal(std::string_view bytes, std::string_view where, bool verify) {
  return Parser(bytes, where, verify).Parse();
}

Expected<JournalFile> LoadJournal(const std::filesystem::path& path) {
  std::error_code none;
  if (std::filesystem::exists(path, none) && !std::filesystem::is_regular_file(path, none)) {
    // Of a pipe nobody would know whether anything ever comes.
    return InvalidArgument(path.string() +
                           ": no regular file; a journal is what --journal has written");
  }
  const auto bytes = ReadWhole(path, "journal");
  if (!bytes) return std::unexpected(bytes.error());
  return ParseJournal(*bytes, path.string());
}

}  // namespace tactus
