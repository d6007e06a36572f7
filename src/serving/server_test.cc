#include "serving/server.h"

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/source_path_for_test.h"
#include "base/temporary_folder_test.h"
#include "server/net/listening_socket.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kTensors = R"(
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 2 ] } ]
)";

void AddModel(const fs::path& repository, const std::string& name, const std::string& config) {
  fs::create_directories(repository / name / "1");
  std::ofstream(repository / name / "config.pbtxt") << "name: \"" << name << "\"\n" << config;
}

// On ports that the system chooses, without an engine that this machine may lack.
ServeOptions OptionsFor(const fs::path& repository) {
  ServeOptions o;
  o.models = {repository.string()};
  o.http_port = o.grpc_port = o.metrics_port = 0;
  o.pin = false;
  o.grace_s = 1;
  return o;
}

// What a server says of its ports, on whichever thread.
class Said {
 public:
  ServerPorts::Print Printer() {
    return [this](const std::string& text) {
      const std::lock_guard lock(mutex_);
      text_ += text;
      changed_.notify_all();
    };
  }
  // All that was said, once `what` was; or after a minute, without it.
  std::string Until(const std::string& what) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::minutes(1),
                      [&] { return text_.find(what) != std::string::npos; });
    return text_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
};

std::string WhyNot(const ServeOptions& options) {
  const LogQueue logs("off");
  const auto server = Server::Make(options, logs);
  return server ? "" : server.error().message;
}

// Otherwise a part of the composition would be missing: models of devices, host operators, or
// ensembles over both.
TEST(ServerTest, ServesModelsOperatorsAndEnsembles) {
  const TemporaryFolder folder;
  fs::copy(SourcePath("examples/emulated-cluster/models"), folder.path(),
           fs::copy_options::recursive);
  AddModel(folder.path(), "echo", std::string("platform: \"identity\"") + kTensors);
  AddModel(folder.path(), "pair",
           std::string("platform: \"ensemble\"") + kTensors +
               R"(ensemble_scheduling { step [ { model_name: "echo"
    input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } ] }
)");
  const LogQueue logs("off");
  ServeOptions options = OptionsFor(folder.path());
  options.lanes = 2;
  const auto server = Server::Make(options, logs);
  ASSERT_TRUE(server) << server.error().message;
  const Status opened = (*server)->Open();
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_THAT((*server)->Text(),
              AllOf(HasSubstr("with horizon on 2 lanes\n"), HasSubstr("ResNet50"),
                    HasSubstr("EMULATED, "), HasSubstr("latencies of pair: those of echo\n"),
                    HasSubstr("EMULATED: there is no device.")));
  Said said;
  (*server)->Announce(said.Printer());
  EXPECT_THAT(said.Until("ready http="),
              AllOf(HasSubstr("HTTP     http://127.0.0.1:"), HasSubstr(" grpc="),
                    HasSubstr(" metrics="), Not(HasSubstr("peers=")), Not(HasSubstr("started"))));
  (*server)->Stop();
}

// Otherwise whoever waits for the line would wait for ever, and not know for which model.
TEST(ServerTest, SaysWhichModelsItWaitsFor) {
  const TemporaryFolder folder;
  AddModel(folder.path(), "bad name, =", "platform: \"none\"");
  AddModel(folder.path(), "echo", std::string("platform: \"identity\"") + kTensors);
  const LogQueue logs("off");
  const auto server = Server::Make(OptionsFor(folder.path()), logs);
  ASSERT_TRUE(server) << server.error().message;
  ASSERT_TRUE((*server)->Open());
  Said said;
  (*server)->Announce(said.Printer());
  EXPECT_THAT(said.Until("started"),
              AllOf(HasSubstr(" not_ready=bad?name???\n"), Not(HasSubstr("ready http="))));
  (*server)->Stop();
}

// A worker of a site has a port for others; they must hear which.
TEST(ServerTest, AWorkerOfASiteHasAPortForOthers) {
  const TemporaryFolder folder;
  AddModel(folder.path(), "echo", std::string("platform: \"identity\"") + kTensors);
  ServeOptions options = OptionsFor(folder.path());
  options.schedulers = {"127.0.0.1:1"};
  const LogQueue logs("off");
  const auto server = Server::Make(options, logs);
  ASSERT_TRUE(server) << server.error().message;
  ASSERT_TRUE((*server)->Open());
  Said said;
  (*server)->Announce(said.Printer());
  EXPECT_THAT(said.Until("ready http="), HasSubstr(" peers="));
  (*server)->Stop();
}

// Otherwise a mistake would show after the models were loaded, or never.
TEST(ServerTest, OptionsThatDoNotGoTogetherAreNamed) {
  const TemporaryFolder folder;
  AddModel(folder.path(), "echo", std::string("platform: \"identity\"") + kTensors);
  const std::vector<std::pair<std::function<void(ServeOptions&)>, std::string>> wrong = {
      {[](ServeOptions& o) { o.policy = "nosuch"; }, "nosuch"},
      {[](ServeOptions& o) { o.engine = "nosuch"; }, "--engine: "},
      {[](ServeOptions& o) { o.load_models = {"echo"}; }, "--load-model echo: "},
      {[](ServeOptions& o) { o.on_share = {"100=a"}; }, "--on-share: "},
      {[](ServeOptions& o) { o.policy = "early-exit-edf", o.save_predictor = "file"; },
       "--save-predictor"},
      {[](ServeOptions& o) { o.autoscale.least = 3, o.autoscale.most = 2; }, "--autoscale-*: "},
      {[](ServeOptions& o) { o.schedulers = {"here"}; }, "--schedulers: 'here'"},
      {[](ServeOptions& o) { o.profile = "/nowhere"; }, "/nowhere"},
      {[](ServeOptions& o) { o.routes = "/dev"; }, "--routes /dev: is no regular file"},
  };
  for (const auto& [change, what] : wrong) {
    ServeOptions options = OptionsFor(folder.path());
    change(options);
    EXPECT_THAT(WhyNot(options), HasSubstr(what));
  }
}

// Otherwise a second server, started by mistake, would move the journal of the one that runs.
TEST(ServerTest, APortThatIsTakenIsNamedBeforeTheJournalIsMoved) {
  const TemporaryFolder folder;
  AddModel(folder.path() / "models", "echo", std::string("platform: \"identity\"") + kTensors);
  std::optional<ListeningSocket> taken(std::in_place);
  const auto port = taken->Open("127.0.0.1", 0);
  ASSERT_TRUE(port) << port.error().message;
  ServeOptions options = OptionsFor(folder / "models");
  options.journal = (folder / "journal").string();
  std::ofstream(options.journal) << "of the server that runs";
  options.grpc_port = *port;
  EXPECT_THAT(WhyNot(options),
              AllOf(HasSubstr("cannot listen"), HasSubstr("name another port with --grpc-port")));
  EXPECT_FALSE(fs::exists(options.journal + ".old"));
  // The one for other nodes is opened last, and would be found out after the models were loaded.
  options.grpc_port = 0;
  options.schedulers = {"127.0.0.1:1"};
  options.peer_listen = "127.0.0.1:" + std::to_string(*port);
  EXPECT_THAT(WhyNot(options), AllOf(HasSubstr("--peer-listen 127.0.0.1:"),
                                     HasSubstr("cannot listen"), HasSubstr("name another port")));
  options.schedulers.clear();
  options.grpc_port = *port;
  // Two options may name one port, which is free.
  taken.reset();
  options.metrics_port = *port;
  EXPECT_THAT(WhyNot(options), HasSubstr("name another port with --metrics-port"));
}

}  // namespace
}  // namespace tactus
