// Models from a controller to a node over a real connection. Without it the threads of both ends
// would be watched by no sanitizer, and a controller that comes late, or goes, could cost a model.
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "base/whole_file.h"
#include "cluster/control/blob_client.h"
#include "cluster/control/controller.h"
#include "cluster/control/model_placer.h"
#include "cluster/control/spare.h"
#include "fleet/fleet_world_test.h"

namespace tactus {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kWeights = 3'000'001;  // several pieces

class ModelTravelTest : public ::testing::Test {
 protected:
  ModelTravelTest() {
    std::filesystem::create_directories(root / "models/big/1");
    std::ofstream(root / "models/big/1/model.onnx", std::ios::binary) << std::string(kWeights, 'w');
    auto read = Catalogue::Read(root / "models", {"big"}, {});
    EXPECT_TRUE(read) << read.error().message;
    catalogue = std::make_shared<const Catalogue>(*std::move(read));
    auto opened = ModelStore::Open({.state = root / "node", .own = {}});
    EXPECT_TRUE(opened) << opened.error().message;
    store = std::make_unique<ModelStore>(*std::move(opened));
  }

  std::unique_ptr<Controller> StartController(const std::string& listen) {
    ControllerOptions options{.listen = listen, .state = root / "state"};
    options.models = catalogue;
    auto controller = Controller::Start(
        std::move(options), FleetWorld::MadeFleet(1, 1),
        [](const FleetInput&) -> Expected<FleetPlan> { return FleetPlan{}; },
        [](const std::string&) {});
    EXPECT_TRUE(controller) << controller.error().message;
    return *std::move(controller);
  }
  static std::string AddressOf(const Controller& controller) {
    return "127.0.0.1:" + std::to_string(controller.port());
  }
  std::unique_ptr<ModelPlacer> Placer(const std::vector<std::string>& controllers,
                                      std::function<void(const std::string&)> log = {}) {
    return std::make_unique<ModelPlacer>(*store, BlobsOfControllers(controllers, {}), "edge0",
                                         std::move(log));
  }
  ModelRef Big() const { return {"big", catalogue->digests().at("big")}; }
  static std::future<Expected<ModelLinks>> Place(ModelPlacer& placer, const ModelRef& ref) {
    auto promise = std::make_shared<std::promise<Expected<ModelLinks>>>();
    placer.Place(ref, {},
                 [promise](Expected<ModelLinks> links) { promise->set_value(std::move(links)); });
    return promise->get_future();
  }

  const TemporaryFolder root;
  std::shared_ptr<const Catalogue> catalogue;
  std::unique_ptr<ModelStore> store;
};

TEST_F(ModelTravelTest, ComesFromTheOneOfTheControllersThatLeads) {
  const auto controller = StartController("127.0.0.1:0");
  const auto spare = SpareController::Start("127.0.0.1:0", {}, [] { return ""; });
  ASSERT_TRUE(spare) << spare.error().message;
  const auto placer =
      Placer({"127.0.0.1:" + std::to_string((*spare)->port()), AddressOf(*controller)});
  const auto links = Place(*placer, Big()).get();
  ASSERT_TRUE(links) << links.error().message;
  ASSERT_EQ(links->size(), 1u);
  EXPECT_EQ(ReadWhole(links->front().second / "1/model.onnx", "file"), std::string(kWeights, 'w'));
  EXPECT_GE(placer->fetched(), kWeights);

  const auto unknown = Place(*placer, {"other", DigestOf("other").text()}).get();
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(unknown.error().message, HasSubstr("the controller's repository has nothing"));
}

TEST_F(ModelTravelTest, AControllerThatGoesDelaysItAndLosesNothing) {
  auto controller = StartController("127.0.0.1:0");
  const std::string address = AddressOf(*controller);
  controller.reset();
  std::promise<void> waits;
  const auto placer = Placer({address}, [&, said = false](const std::string& line) mutable {
    if (!said && line.starts_with("models wait")) waits.set_value();
    said = true;
  });
  auto links = Place(*placer, Big());
  waits.get_future().wait();
  controller = StartController(address);
  const auto come = links.get();
  ASSERT_TRUE(come) << come.error().message;
  EXPECT_EQ(std::filesystem::file_size(come->front().second / "1/model.onnx"), kWeights);
}

TEST_F(ModelTravelTest, WhatIsStoppedEndsAndWhatIsHereNeedsNoController) {
  {
    const auto controller = StartController("127.0.0.1:0");
    ASSERT_TRUE(Place(*Placer({AddressOf(*controller)}), Big()).get());
  }
  std::promise<void> waits;
  const auto placer = Placer({"127.0.0.1:1"}, [&, said = false](const std::string& line) mutable {
    if (!said && line.starts_with("models wait")) waits.set_value();
    said = true;
  });
  auto lacking = Place(*placer, {"other", DigestOf("other").text()});
  waits.get_future().wait();
  const auto here = Place(*placer, Big()).get();  // behind it
  EXPECT_TRUE(here) << here.error().message;
  placer->Stop("other");
  const auto stopped = lacking.get();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace tactus
