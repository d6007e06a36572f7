// tactus serve: models from a repository behind KServe v2 over HTTP and gRPC, until SIGTERM.
#include <memory>

#include "commands.h"
#include "run_server.h"
#include "serve_options.h"
#include "serving/server.h"

namespace tactus {

void AddServe(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command =
      app.add_subcommand("serve", "Serve models over KServe v2 (HTTP and gRPC) by deadline");
  Declare(*options, *command);
  command->callback([options, &context] { context.exit_code = RunServer<Server>(*options); });
}

}  // namespace tactus
