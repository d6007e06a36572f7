#include "hindsight/perfetto.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tactus {
namespace {

// A field of a protobuf message: its number or, of text, its bytes.
struct Field {
  std::uint64_t number = 0;
  std::string_view text;
};
using Message = std::multimap<std::uint32_t, Field>;

std::uint64_t TakeVarint(std::string_view& from) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(from.at(0));
    from.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

Message Parse(std::string_view bytes) {
  Message message;
  while (!bytes.empty()) {
    const std::uint64_t tag = TakeVarint(bytes);
    Field field;
    if ((tag & 7) == 0) {
      field.number = TakeVarint(bytes);
    } else {
      const std::size_t size = (tag & 7) == 1 ? 8 : TakeVarint(bytes);
      field.text = bytes.substr(0, size);
      bytes.remove_prefix(size);
      for (std::size_t i = 0; (tag & 7) == 1 && i < 8; ++i) {
        field.number |= std::uint64_t{static_cast<unsigned char>(field.text[i])} << (8 * i);
      }
    }
    message.emplace(static_cast<std::uint32_t>(tag >> 3), field);
  }
  return message;
}

std::uint64_t Number(const Message& message, std::uint32_t field) {
  const auto found = message.find(field);
  return found == message.end() ? 0 : found->second.number;
}

std::string Text(const Message& message, std::uint32_t field) {
  const auto found = message.find(field);
  return found == message.end() ? "" : std::string(found->second.text);
}

// By the numbers of Perfetto's published messages.
struct Read {
  explicit Read(std::string trace) : bytes(std::move(trace)) {
    for (const auto& [number, packet] : Parse(bytes)) {
      EXPECT_EQ(number, 1u);
      const Message fields = Parse(packet.text);
      if (const auto track = fields.find(60); track != fields.end()) {
        const Message described = Parse(track->second.text);
        names[Number(described, 1)] = Text(described, 2);
      }
      const auto event = fields.find(11);
      if (event == fields.end()) continue;
      events.push_back(Parse(event->second.text));
      times.push_back(Number(fields, 8));
    }
  }
  std::string TrackOf(std::size_t event) { return names[Number(events[event], 11)]; }

  const std::string bytes;  // which the messages lie in
  std::map<std::uint64_t, std::string> names;
  std::vector<Message> events;
  std::vector<std::uint64_t> times;  // ns
};

TEST(Perfetto, ABatchIsASliceOfItsLaneAndFlowsLeadToIt) {
  auto served = std::make_shared<ServedModels>();
  served->models = {{.name = "net", .slo = Millis(20), .max_batch = 4, .exits = {{"1", 0.5}}}};
  PerfettoTrace trace({LaneSpec{.slots = 2}});
  trace.Configured(served);
  const std::vector<Request> requests = {
      {.id = RequestId{7}, .arrival = kStart + Millis(1), .deadline = kStart + Millis(9)},
      {.id = RequestId{8}, .arrival = kStart + Millis(2), .deadline = kStart + Millis(30)}};
  for (const Request& request : requests) trace.Arrived(ModelId{0}, request);
  trace.Launched({.id = BatchId{3},
                  .model = ModelId{0},
                  .lane = LaneId{0},
                  .start = kStart + Millis(3),
                  .expected_end = kStart + Millis(8),
                  .requests = requests});
  trace.Finished(BatchId{3}, {.started = kStart + Millis(4), .ended = kStart + Millis(10)});
  const Request third{.id = RequestId{9}, .arrival = kStart + Millis(5)};
  trace.Arrived(ModelId{0}, third);
  trace.GivenUp(ModelId{0}, third, DropReason::kShed, kStart + Millis(6));
  Read read(std::move(trace).Take());

  std::multimap<std::uint64_t, std::string> flows;  // where each leads, by instant
  std::vector<std::pair<std::uint64_t, std::uint64_t>> waiting;
  int slices = 0;
  for (std::size_t i = 0; i < read.events.size(); ++i) {
    const Message& event = read.events[i];
    const auto [first, last] = event.equal_range(47);
    for (auto flow = first; flow != last; ++flow) {
      flows.emplace(flow->second.number, read.TrackOf(i));
    }
    if (Number(event, 9) == 1) {  // a slice begins
      ++slices;
      EXPECT_EQ(read.TrackOf(i), "lane 0, slot 0");
      EXPECT_EQ(Text(event, 23), "net, 2 rows");
      EXPECT_EQ(read.times[i], 4'000'000u);
      const Message late = Parse(event.find(4)->second.text);
      EXPECT_EQ(Text(late, 10), "late_rows");
      EXPECT_EQ(Number(late, 3), 1u);
    }
    if (Number(event, 9) == 2) EXPECT_EQ(read.times[i], 10'000'000u);
    if (Number(event, 9) == 4) {
      EXPECT_EQ(read.TrackOf(i), "net waiting");
      waiting.emplace_back(read.times[i] / 1'000'000, Number(event, 30));
    }
  }
  EXPECT_EQ(slices, 1);
  for (const std::uint64_t request : {8u, 9u}) {  // flow ids are never 0
    const auto [first, last] = flows.equal_range(request);
    ASSERT_EQ(std::distance(first, last), 2);
    EXPECT_EQ(first->second, "requests to net");
    EXPECT_EQ(std::next(first)->second, "lane 0, slot 0");
  }
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> expected = {
      {1, 1}, {2, 2}, {3, 0}, {5, 1}, {6, 0}};
  EXPECT_EQ(waiting, expected);
}

}  // namespace
}  // namespace tactus
