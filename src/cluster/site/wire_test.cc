#include "cluster/site/wire.h"

#include <gtest/gtest.h>

#include "site.pb.h"

namespace tactus {
namespace {

const TimePoint kHere = kStart + Seconds(100);
const TimePoint kThere = kStart + Seconds(5);  // another machine's clock

WorkerModel SomeModel() {
  WorkerModel model;
  model.spec = {.name = "m",
                .version = 3,
                .platform = "onnxruntime_onnx",
                .max_batch = 2,
                .slo = Millis(50),
                .priority = 2,
                .inputs = {{"x", DataType::kFp32, {-1, 4}, Shape{-1, 2, 2}},
                           {"z", DataType::kFp32, {-1, 4}, {}, true, true}},
                .outputs = {{"y", DataType::kBytes, {-1}}},
                .exits = {{"1", {}, 0.5}, {"2", {}, 0.9}},
                .profile = {},
                .parameters = {{"key", "value"}},
                .config = "bytes",
                .digest = "0a"};
  model.model = {.name = "m", .slo = Millis(50), .max_batch = 2, .priority = 2, .exits = {}};
  model.rows = {.exits = 2,
                .max_batch = 2,
                .latency = {Millis(1), Millis(2), Millis(3), Millis(4)},
                .margin = Micros(7)};
  return model;
}

site::FromPeer Sent(const FromPeer& message) {
  site::FromPeer wire;
  Encode(message, kHere, wire);
  return wire;
}

TEST(SiteWireTest, OffersKeepTheTimeThatIsLeft) {
  FromPeer message{.seen = 9};
  message.offers = {{RequestId{5}, KeyOf("m"), kHere + Millis(30), 4, 2},
                    {.request = RequestId{6}, .model = KeyOf("n"), .withdrawn = true}};
  message.voids = {{{9, 70}, 3, true}};
  message.done = {{{9, 71}, Millis(8), BatchStatus::kFailed}};
  const auto heard = Decode(Sent(message), kThere);
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->seen, 9U);
  ASSERT_EQ(heard->offers.size(), 2U);
  EXPECT_TRUE(heard->offers[1].withdrawn);
  EXPECT_EQ(heard->offers[0], (Offer{RequestId{5}, KeyOf("m"), kThere + Millis(30), 4, 2}));
  EXPECT_EQ(heard->voids.at(0).key, (BatchKey{9, 70}));
  EXPECT_TRUE(heard->voids.at(0).unreachable);
  EXPECT_EQ(heard->done.at(0).took, Millis(8));
  EXPECT_EQ(heard->done.at(0).status, BatchStatus::kFailed);
}

TEST(SiteWireTest, AWorkerSaysAllThatFrontEndsMustKnow) {
  FromPeer message;
  message.join = {{.name = "w", .address = "a:1", .lanes = 2, .busy = 1, .models = {SomeModel()}}};
  const auto heard = Decode(Sent(message), kThere);
  ASSERT_TRUE(heard);
  const WorkerIntroduction& worker = heard->join.at(0);
  EXPECT_EQ(worker.address, "a:1");
  EXPECT_EQ(worker.busy, 1);
  const WorkerModel& model = worker.models.at(0);
  EXPECT_EQ(model.spec.version, 3);
  EXPECT_EQ(model.spec.inputs.at(0).dims, (Shape{-1, 4}));
  EXPECT_EQ(model.spec.inputs.at(0).reshape, (Shape{-1, 2, 2}));
  EXPECT_FALSE(model.spec.inputs.at(0).optional);
  EXPECT_TRUE(model.spec.inputs.at(1).optional);
  EXPECT_FALSE(model.spec.inputs.at(0).any_shape);
  EXPECT_TRUE(model.spec.inputs.at(1).any_shape);
  EXPECT_FALSE(model.spec.outputs.at(0).reshape);
  EXPECT_EQ(model.spec.outputs.at(0).type, DataType::kBytes);
  EXPECT_EQ(model.spec.parameters.at("key"), "value");
  EXPECT_EQ(model.spec.config, "bytes");
  EXPECT_EQ(model.spec.digest, "0a");
  EXPECT_EQ(model.model.exits.at(1).accuracy, 0.9);
  EXPECT_EQ(model.model.slo, Millis(50));
  EXPECT_EQ(model.rows.latency, SomeModel().rows.latency);
  EXPECT_EQ(model.rows.margin, Micros(7));
}

TEST(SiteWireTest, GrantsAndRefusalsArriveAsTheyWereSent) {
  ToPeer message{.term = 4, .leads = true, .has_workers = true};
  message.workers = {{2, "w", "a:1"}};
  message.models = {SomeModel()};
  message.grants = {{{4, 8}, KeyOf("m"), ExitId{1}, 2, 5, {RequestId{1}, RequestId{9}}}};
  message.refusals = {{RequestId{3}, KeyOf("m"), DropReason::kShed}};
  site::ToPeer wire;
  Encode(message, wire);
  const auto heard = Decode(wire);
  ASSERT_TRUE(heard);
  EXPECT_TRUE(heard->leads && heard->has_workers);
  EXPECT_EQ(heard->workers, message.workers);
  EXPECT_EQ(heard->grants.at(0).requests, message.grants[0].requests);
  EXPECT_EQ(heard->grants.at(0).rows, 5U);
  EXPECT_EQ(heard->refusals.at(0).reason, DropReason::kShed);
}

// Each is one field out of range in a message that is otherwise sound.
TEST(SiteWireTest, RefusesWhatIsOutOfRange) {
  const auto refused = [](auto change) {
    FromPeer message;
    message.join = {{.name = "w", .address = "a:1", .lanes = 2, .models = {SomeModel()}}};
    message.done = {{{1, 1}, Millis(1), BatchStatus::kOk}};
    message.offers = {{RequestId{1}, 1, kHere}};
    site::FromPeer wire = Sent(message);
    EXPECT_TRUE(Decode(wire, kThere));
    change(wire);
    return !Decode(wire, kThere).has_value();
  };
  using Wire = site::FromPeer;
  EXPECT_TRUE(refused([](Wire& w) { w.mutable_join(0)->clear_name(); }));
  EXPECT_TRUE(refused([](Wire& w) { w.mutable_join(0)->set_lanes(0); }));
  EXPECT_TRUE(refused([](Wire& w) { w.mutable_join(0)->set_busy(3); }));
  EXPECT_TRUE(refused([](Wire& w) { w.mutable_done(0)->set_status(4); }));
  EXPECT_TRUE(refused([](Wire& w) { w.mutable_offers(0)->set_priority(2'000'000); }));
  const auto bad_model = [&](auto change) {
    return refused([&](Wire& w) { change(*w.mutable_join(0)->mutable_models(0)); });
  };
  using Model = site::Model;
  EXPECT_TRUE(bad_model([](Model& m) { m.set_largest_batch(3); })) << "latencies are missing";
  EXPECT_TRUE(bad_model([](Model& m) { m.set_largest_batch(-1); }));
  EXPECT_TRUE(bad_model([](Model& m) { m.set_digest(std::string(65, 'a')); }));
  EXPECT_TRUE(bad_model([](Model& m) { m.set_latency_ns(0, 0); }));
  EXPECT_TRUE(bad_model([](Model& m) { m.set_slo_ns(-1); }));
  EXPECT_TRUE(bad_model([](Model& m) { m.mutable_exits(0)->set_accuracy(2); }));
  EXPECT_TRUE(bad_model([](Model& m) { m.mutable_inputs(0)->set_datatype("FP31"); }));
  EXPECT_TRUE(bad_model([](Model& m) { m.mutable_inputs(0)->mutable_reshape()->add_dims(2); }));
  EXPECT_TRUE(refused([](Wire& w) { *w.mutable_join(0)->add_models() = w.join(0).models(0); }))
      << "one name twice";
  EXPECT_TRUE(refused([](Wire& w) { w.set_seen(~std::uint64_t{0}); }));
  site::ToPeer grant;
  grant.add_grants()->set_rows(1);
  EXPECT_FALSE(Decode(grant)) << "a grant of nothing";
  grant.mutable_grants(0)->add_requests(1);
  EXPECT_TRUE(Decode(grant));
}

}  // namespace
}  // namespace tactus
