// tactus: one binary; `tactus COMMAND --help` explains each command.
#include <string>
#include <vector>

#include "commands.h"
#include "metrics/report.h"
#include "output_file.h"

namespace {

// One line, as every other bad input gets.
std::string BadOption(const CLI::App* app, const CLI::Error& error) {
  const std::vector<std::string> unknown = app->remaining(true);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !unknown.empty()) {
    return "tactus: there is no command '" + unknown.front() + "'; --help lists them\n";
  }
  const bool value = dynamic_cast<const CLI::ValidationError*>(&error) != nullptr;
  return std::string("tactus: ") + error.what() + (value ? "\n" : "; --help explains\n");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Tactus serves many DNN models on few accelerators and meets their deadlines."};
  app.require_subcommand(1);
  app.failure_message(BadOption);
  app.set_version_flag("--version", "tactus 0.1.0, commit " + tactus::BuildCommit());
  // Before the command's own callback, which runs it.
  app.parse_complete_callback([&app] { tactus::RefuseSharedFiles(app); });
  tactus::CommandContext context;
  tactus::AddCompare(app, context);
  tactus::AddFit(app, context);
  tactus::AddGoodput(app, context);
  tactus::AddPlan(app, context);
  tactus::AddPolicies(app, context);
  tactus::AddReplay(app, context);
  tactus::AddReproduce(app, context);
  tactus::AddSimulate(app, context);
#ifdef TACTUS_SERVER  // these read model folders, or speak to servers
  tactus::AddLoad(app, context);
  tactus::AddMeasure(app, context);
  tactus::AddProfile(app, context);
  tactus::AddServe(app, context);
#endif
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return context.exit_code;
}
