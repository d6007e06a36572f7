// tactus: one binary; `tactus COMMAND --help` explains each command.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "commands.h"
#include "metrics/report.h"
#include "output_file.h"
#ifdef TACTUS_SERVER
#include "serve_isolation.h"
#endif

namespace {

// What a missing option is for, behind what the parser says of it.
std::string Missing(const CLI::App* app, std::string said) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  const CLI::Option* option = app->get_option_no_throw(said.substr(0, said.find(' ')));
  return option == nullptr ? said : said + ": " + option->get_description();
}

// One line, as every other bad input gets.
std::string BadOption(const CLI::App* app, const CLI::Error& error) {
  const std::vector<std::string> unknown = app->remaining(true);
  const bool missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (missing && !unknown.empty()) {
    const auto commands = app->get_subcommands();
    const bool option = !commands.empty() && unknown.front().starts_with('-');
    return "tactus: there is no " + std::string(option ? "option '" : "command '") +
           unknown.front() + "'; " + (option ? commands.front()->get_name() + " " : "") +
           "--help lists them\n";
  }
  const bool value = dynamic_cast<const CLI::ValidationError*>(&error) != nullptr;
  const std::string said = missing ? Missing(app, error.what()) : error.what();
  return "tactus: " + said + (value ? "\n" : "; --help explains\n");
}

// The parser reads "nan" as a number, and no comparison with a bound refuses it. Nor does a number
// without bounds stop at infinity. Here for every option of every command.
void RefuseWhatIsNoNumber(CLI::App& app) {
  const auto refuse = [](const std::string& text) -> std::string {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return end != text.c_str() && !std::isfinite(value) ? "'" + text + "' is no number" : "";
  };
  for (CLI::Option* option : app.get_options()) {
    if (option->get_type_name().starts_with("FLOAT")) option->check(CLI::Validator(refuse, ""));
  }
  for (CLI::App* command : app.get_subcommands({})) RefuseWhatIsNoNumber(*command);
}

}  // namespace

int tactus::ReportBadInput(const Error& error) {
  std::fprintf(stderr, "tactus: %s\n", error.message.c_str());
  return 2;
}

int main(int argc, char** argv) {
#ifdef TACTUS_SERVER
  tactus::RunIfEngineProcess(argc, argv);
#endif
  // What gRPC logs by itself repeats, at length, what its calls return.
  ::setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  CLI::App app{"Tactus serves many models on one machine or several, and meets their deadlines."};
  app.require_subcommand(1);
  app.failure_message(BadOption);
  app.set_version_flag("--version", std::string("tactus ") + tactus::kProgramVersion + ", commit " +
                                        tactus::BuildCommit());
  // Before the command's own callback, which runs it.
  app.parse_complete_callback([&app] { tactus::RefuseSharedFiles(app); });
  tactus::CommandContext context;
  tactus::AddCheck(app, context);
  tactus::AddCompare(app, context);
  tactus::AddCompletions(app, context);
  tactus::AddFit(app, context);
  tactus::AddGoodput(app, context);
  tactus::AddMan(app, context);
  tactus::AddPlan(app, context);
  tactus::AddPolicies(app, context);
  tactus::AddReplay(app, context);
  tactus::AddReproduce(app, context);
  tactus::AddSimulate(app, context);
#ifdef TACTUS_SERVER  // these read model folders, or speak to servers
  tactus::AddAgent(app, context);
  tactus::AddCluster(app, context);
  tactus::AddController(app, context);
  tactus::AddFrontEnd(app, context);
  tactus::AddInit(app, context);
  tactus::AddLoad(app, context);
  tactus::AddMeasure(app, context);
  tactus::AddProfile(app, context);
  tactus::AddScheduler(app, context);
  tactus::AddServe(app, context);
  tactus::AddStream(app, context);
#endif
  RefuseWhatIsNoNumber(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return context.exit_code;
}
