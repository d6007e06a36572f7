// An agent gives its worker the models of the plan: were it to wait until those are ready, neither
// would ever go on.
#include "cluster/control/worker.h"

#include <fstream>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"

namespace tactus {
namespace {

// A program that says this line, and then lives on.
std::filesystem::path Saying(const TemporaryFolder& folder, const std::string& line) {
  const auto program = folder / "worker";
  std::ofstream(program) << "#!/bin/sh\necho \"$@\" >" << (folder / "words").string() << "\necho '"
                         << line << "'\nexec sleep 600\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  return program;
}

TEST(Worker, IsUpOnceItHasStartedThoughItWaitsForModels) {
  for (const char* line : {"ready http=1 grpc=2 metrics=3 peers=4",
                           "started http=1 grpc=2 metrics=3 peers=4 not_ready=a,b"}) {
    SCOPED_TRACE(line);
    const TemporaryFolder folder;
    std::promise<KeptWorker> up;
    Worker worker({.program = Saying(folder, line),
                   .models = folder / "models",
                   .arguments = {},
                   .state = folder.path()},
                  {.up = [&](const KeptWorker& kept, bool) { up.set_value(kept); },
                   .down = [](const std::string& why, bool) { ADD_FAILURE() << why; }});
    const KeptWorker kept = up.get_future().get();
    EXPECT_EQ(kept.http, 1);
    EXPECT_EQ(kept.grpc, 2);
    EXPECT_EQ(kept.metrics, 3);
    EXPECT_EQ(kept.peer, 4);
    worker.Stop(std::chrono::milliseconds(0));
  }
}

// Otherwise the plan counts on one lane, and the node has as many as its machine has cores.
TEST(Worker, HasOneLaneUnlessItsOptionsSayOtherwise) {
  const auto words = [](std::vector<std::string> arguments) {
    const TemporaryFolder folder;
    std::promise<void> up;
    Worker worker({.program = Saying(folder, "ready http=1 grpc=2 metrics=3 peers=4"),
                   .models = folder / "models",
                   .arguments = std::move(arguments),
                   .state = folder.path()},
                  {.up = [&](const KeptWorker&, bool) { up.set_value(); },
                   .down = [](const std::string& why, bool) { ADD_FAILURE() << why; }});
    up.get_future().get();
    worker.Stop(std::chrono::milliseconds(0));
    std::ifstream file(folder / "words");
    std::string line;
    std::getline(file, line);
    return line;
  };
  EXPECT_TRUE(words({}).ends_with(" --lanes 1"));
  EXPECT_TRUE(words({"--slots", "2"}).ends_with(" --lanes 1 --slots 2"));
  for (const char* own : {"--lanes=4", "--threads=2", "--config=serve.toml"}) {
    EXPECT_EQ(words({own}).find("--lanes 1"), std::string::npos) << own;
  }
}

}  // namespace
}  // namespace tactus
