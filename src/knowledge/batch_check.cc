#include "knowledge/batch_check.h"

#include <cmath>
#include <concepts>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "knowledge/sql/fields.h"

namespace tactus::knowledge {
namespace {

constexpr UtcTime kEarliest = std::chrono::sys_days(std::chrono::year(2000) / 1 / 1);
constexpr UtcTime kLatest = std::chrono::sys_days(std::chrono::year(2200) / 1 / 1);

// How long the UTF-8 sequence at the text's begin is; 0: it is none, or NUL. RFC 3629.
std::size_t SequenceAt(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0), second = byte(1);
  if (first == 0) return 0;
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if ((first & 0xF0U) == 0xE0) {
    const bool shortest = first != 0xE0 || second >= 0xA0;
    const bool no_surrogate = first != 0xED || second < 0xA0;
    return follows(1) && follows(2) && shortest && no_surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool in_range = (first != 0xF0 || second >= 0x90) && (first != 0xF4 || second < 0x90);
    return follows(1) && follows(2) && follows(3) && in_range ? 4 : 0;
  }
  return 0;
}

bool IsText(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = SequenceAt(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// What is wrong with a field; null: nothing.
template <class T>
const char* FaultOfField(const T& field) {
  if constexpr (std::same_as<T, std::string>) {
    if (!IsText(field)) return "is not UTF-8, or holds NUL";
  } else if constexpr (std::same_as<T, double>) {
    if (!std::isfinite(field)) return "is not a finite number";
  } else if constexpr (std::same_as<T, std::uint64_t>) {
    if (field > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) return "is above 2^63 - 1";
  }
  return nullptr;
}

template <class Record>
void CheckRecord(const Record& record, std::string& fault) {
  const auto found = [&](const char* column, const char* wrong) {
    if (wrong && fault.empty()) {
      fault = fmt::format("{}.{} {}", Fields<Record>::kTable, column, wrong);
    }
  };
  if constexpr (std::same_as<Record, ArrivalSample> || std::same_as<Record, NetworkSample>) {
    const bool dated = record.at >= kEarliest && record.at < kLatest;
    found("at", dated ? nullptr : "is not between the years 2000 and 2200");
  }
  VisitFields(record,
              [&](const char* column, const auto& field) { found(column, FaultOfField(field)); });
}

std::size_t TextIn(const auto& record) {
  std::size_t bytes = 0;
  VisitFields(record, [&]<class T>(const char*, const T& field) {
    if constexpr (std::same_as<T, std::string>) bytes += field.size();
  });
  return bytes;
}

}  // namespace

Status CheckBatch(const Batch& batch) {
  std::string fault;
  for (const std::uint64_t number : {batch.term, batch.sequence}) {
    if (const char* wrong = FaultOfField(number)) {
      fault = std::string("its term or sequence ") + wrong;
    }
  }
  ForEachList(batch, [&]<class Record>(const std::vector<Record>& list) {
    for (const Record& record : list) CheckRecord(record, fault);
  });
  if (fault.empty()) return {};
  return InvalidArgument("a batch for the knowledge base: " + fault + "; correct what wrote it");
}

std::size_t Batch::records() const {
  std::size_t count = 0;
  ForEachList(*this, [&](const auto& list) { count += list.size(); });
  return count;
}

std::size_t Batch::bytes() const {
  std::size_t bytes = sizeof(Batch);
  ForEachList(*this, [&]<class Record>(const std::vector<Record>& list) {
    bytes += list.size() * sizeof(Record);
    for (const Record& record : list) bytes += TextIn(record);
  });
  return bytes;
}

}  // namespace tactus::knowledge
