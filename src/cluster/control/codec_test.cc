// Without these a message could mean something else at the other end of a connection, or a file of
// state something else after a restart.
#include "cluster/control/codec.h"

#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "base/whole_file.h"
#include "cluster/control/state_file.h"
#include "control.pb.h"
#include "fleet/fleet_world_test.h"

namespace tactus {
namespace {

FleetSlice ASlice() {
  return {.id = {3, 9},
          .instances = {{"p", "find", "m", 1, 2, 8, Millis(1), Millis(2), Millis(100)}},
          .routes = {{"p", "more", "n", {{"a", 2}, {"b", 1}}}},
          .models = {{"m", std::string(64, 'a')}, {"p", std::string(64, '0')}}};
}

template <class Wire, class Message>
void ExpectSame(const Message& message) {
  Wire wire;
  Encode(message, wire);
  Wire read;
  ASSERT_TRUE(read.ParseFromString(wire.SerializeAsString()));
  const auto decoded = Decode(read);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(*decoded, message);
}

TEST(Codec, EveryMessageComesBackAsItWas) {
  const NodeReport report{.term = 3,
                          .committed = {3, 9},
                          .prepared = {3, 10},
                          .retired = {3, 8},
                          .refused = {3, 10},
                          .prepared_ready = true,
                          .committed_ready = true,
                          .failing = true,
                          .old_in_flight = -1,
                          .peers = 1ULL << 63,
                          .fetched = 5,
                          .trouble = "model 'm': no memory",
                          .http = "127.0.0.1:1",
                          .grpc = "127.0.0.1:2",
                          .peer = "10.0.0.1:3"};
  ExpectSame<control::FromNode>(FromNode{"a", {1ULL << 63, 2}, 3, NodeHello{report, ASlice()}});
  ExpectSame<control::FromNode>(
      FromNode{"a", {1, 2}, 4, NodeBeat{report, {{"m", 1.5}}, {{"b", {2.5, Millis(3)}}}}});
  for (const decltype(ToNode::what)& what : std::vector<decltype(ToNode::what)>{
           WelcomeOrder{Millis(200)}, GreetOrder{}, DenyOrder{"why"}, PrepareOrder{ASlice()},
           CommitOrder{{3, 9}, {{"a", "h:1"}}}, PeersOrder{{{"a", "h:1"}}},
           RetireOrder{{3, 9}, {"m"}}, AbandonOrder{{3, 9}, true, {"m"}}}) {
    ExpectSame<control::ToNode>(ToNode{"a", {1, 2}, 3, what});
  }
}

TEST(Codec, WhatMakesNoSenseIsRefusedByName) {
  control::FromNode wire;
  EXPECT_EQ(Decode(wire).error().message, "invalid FromNode.count in a message");
  wire.set_count(1);
  EXPECT_EQ(Decode(wire).error().message, "invalid FromNode.what in a message");
  wire.mutable_beat()->add_rates()->set_rps(-1);
  EXPECT_EQ(Decode(wire).error().message, "invalid Rate.rps in a message");
  wire.set_node(std::string(300, 'x'));
  EXPECT_EQ(Decode(wire).error().message, "invalid FromNode.node in a message");

  // A node writes under a ModelRef.name, and reads by its digest.
  control::ToNode order;
  control::ModelRef& ref = *order.mutable_prepare()->mutable_slice()->add_models();
  ref.set_digest(std::string(64, 'a'));
  for (const char* name : {"", "..", "../x", "a/b", ".hidden"}) {
    ref.set_name(name);
    EXPECT_EQ(Decode(order).error().message, "invalid ModelRef.name in a message") << name;
  }
  ref.set_name("a");
  EXPECT_TRUE(Decode(order));
  ref.set_digest("../" + std::string(61, 'a'));
  EXPECT_EQ(Decode(order).error().message, "invalid ModelRef.digest in a message");
}

// A file's name in it would else end the connection of a node in trouble.
TEST(Codec, TroubleIsAlwaysText) {
  NodeReport report;
  report.trouble = "file '\xff\xc3' is bad";
  control::FromNode wire;
  Encode(FromNode{"a", {1, 1}, 1, NodeBeat{report, {}}}, wire);
  control::FromNode read;
  ASSERT_TRUE(read.ParseFromString(wire.SerializeAsString()));
  EXPECT_EQ(ReportOf(*Decode(read)).trouble,
            "file '?"
            "?' is bad");
}

TEST(StateFile, IsReadAsItWasWrittenOrRefusedWithItsLine) {
  const TemporaryFolder folder;
  const auto fresh = ReadNode(folder.path());
  ASSERT_TRUE(fresh);
  EXPECT_NE(fresh->who.home, 0u);
  const NodeKept kept{.who = {5, 6},
                      .term = 3,
                      .slice = ASlice(),
                      .held = {"old"},
                      .peers = {{"a", "h:1"}},
                      .loaded = {{"m", std::string(64, 'b')}}};
  ASSERT_TRUE(Write(kept, folder.path()));
  EXPECT_EQ(*ReadNode(folder.path()), kept);
  ASSERT_TRUE(Write(LeaderKept{7, 8}, folder.path()));
  EXPECT_EQ(*ReadLeader(folder.path()), (LeaderKept{7, 8}));
  const KeptWorker worker{{12, 34}, 1, 2, 3, 4, "/models"};
  ASSERT_TRUE(Write(worker, folder.path()));
  EXPECT_EQ(ReadWorker(folder.path()), worker);
  const WorkerRoutes routes{{3, 9},
                            {{"p", "s", "m", {{"a", "h:1", 2, false}, {"b", "", 1, true}}}}};
  ASSERT_TRUE(Write(routes, folder.path()));
  const auto text = ReadWhole(RoutesIn(folder.path()), "routes");
  ASSERT_TRUE(text);
  EXPECT_EQ(*ParseState<control::RoutesFile>(*text, "r"), routes);
  EXPECT_TRUE(ReadLinks(folder.path()).empty());
  const std::vector<MeasuredLink> links = {{"b", {2.5, Millis(3)}}, {"c", {0, Millis(1)}}};
  ASSERT_TRUE(Write(links, folder.path()));
  EXPECT_EQ(ReadLinks(folder.path()), links);
  EXPECT_EQ(ParseState<control::LinksFile>("links { rtt_ns: -1 }", "l").error().message,
            "l: invalid Link.rtt_ns in a message; move it away to start again");
  EXPECT_EQ(ParseState<control::RoutesFile>("routes { to { weight: -1 } }", "r").error().message,
            "r: invalid Target.weight in a message; move it away to start again");

  const auto refused = ParseState<control::NodeFile>("home: 5\nsomething: 1\n", "n");
  EXPECT_TRUE(refused.error().message.starts_with("n:2: ")) << refused.error().message;
  EXPECT_FALSE(ParseState<control::NodeFile>("count: 5\n", "n"));
  EXPECT_FALSE(ParseState<control::WorkerFile>("pid: 1\n", "w"))
      << "that is the machine's first process";
}

// What a thousand agents put on the wire while nothing happens, and a plan for all of them.
TEST(Codec, AThousandAgentsSayLittle) {
  std::size_t reports = 0;
  std::size_t report_bytes = 0;
  std::size_t prepare_bytes = 0;
  std::size_t largest_slice = 0;
  FleetWorldOptions options{.seed = 3, .servers = 20, .edges = 980};
  options.faults = options.transcript = false;
  options.on_report = [&](const FromNode& message) {
    control::FromNode wire;
    Encode(message, wire);
    ++reports;
    report_bytes += wire.ByteSizeLong();
  };
  options.on_order = [&](const ToNode& order) {
    if (!std::holds_alternative<PrepareOrder>(order.what)) return;
    control::ToNode wire;
    Encode(order, wire);
    prepare_bytes += wire.ByteSizeLong();
    if (order.node.starts_with("edge")) {
      largest_slice = std::max(largest_slice, wire.ByteSizeLong());
    }
  };
  options.planning = [](const FleetInput& input) -> Expected<FleetPlan> {
    FleetPlan plan;
    for (FleetPipelineId::rep p = 0; p < input.pipelines.size(); ++p) {
      for (FleetStageId::rep s = 0; s < input.pipelines[p].stages.size(); ++s) {
        plan.instances.push_back({FleetPipelineId{p}, FleetStageId{s}, DeviceId{p % 20}});
      }
    }
    plan.routes = RoutesOf(plan.instances);
    return plan;
  };
  FleetWorld world(options);
  world.Run(kStart + Seconds(20));
  ASSERT_TRUE(world.Settled());
  reports = report_bytes = 0;
  world.Run(kStart + Seconds(21));
  EXPECT_EQ(reports, 1000u);
  EXPECT_LT(report_bytes, 100'000u);
  EXPECT_LT(largest_slice, 2000u) << "an edge's part of the plan";
  EXPECT_LT(prepare_bytes, 2'000'000u) << "the whole plan";
  RecordProperty("report_bytes_per_second", static_cast<int>(report_bytes));
  RecordProperty("prepare_bytes", static_cast<int>(prepare_bytes));
  RecordProperty("largest_edge_slice", static_cast<int>(largest_slice));
}

}  // namespace
}  // namespace tactus
