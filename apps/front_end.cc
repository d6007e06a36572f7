// tactus front-end: takes calls for a site and passes them to its workers as the central scheduler
// grants. With a repository it runs the pipelines of that, of the site's models.
#include "serving/front_end.h"

#include <memory>

#include "commands.h"
#include "run_server.h"
#include "serve_options.h"

namespace tactus {

void AddFrontEnd(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command = app.add_subcommand(
      "front-end",
      "Take calls for a site of workers under a central scheduler (docs/reference/site.md)");
  command
      ->add_option(
          "--schedulers", options->schedulers,
          "The site's schedulers, HOST:PORT; every process needs the same list in the same order")
      ->delimiter(',')
      ->option_text(kCommaList)
      ->required();
  AddOption(*command, "--most-workers", options->most_workers, CLI::Range(1, 1024),
            "Most workers of the site; the same as for its schedulers")
      ->capture_default_str();
  DeclareFrontEnd(*options, *command);
  command->callback([options, &context] { context.exit_code = RunServer<FrontEnd>(*options); });
}

}  // namespace tactus
