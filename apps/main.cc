// tactus: one binary; `tactus COMMAND --help` explains each command.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <new>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error_line.h"
#include "base/nearest.h"
#include "base/why_not_written.h"
#include "commands.h"
#include "config_file.h"
#include "help_format.h"
#include "metrics/report.h"
#include "metrics/text_table.h"
#include "output_file.h"
#ifdef TACTUS_SERVER
#include <absl/synchronization/mutex.h>

#include "serving/isolation.h"
#endif

namespace {

// What a missing option is for, behind what the parser says of it.
std::string Missing(const CLI::App* app, std::string said) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  const CLI::Option* option = app->get_option_no_throw(said.substr(0, said.find(' ')));
  return option == nullptr ? said : said + ": " + option->get_description();
}

std::set<std::string> WordsOf(std::string option) {
  std::ranges::replace(option, '-', ' ');
  std::istringstream text(option.substr(0, option.find('=')));
  return {std::istream_iterator<std::string>(text), {}};
}

// Options of the command that share a word with one that it does not have: "--tls" is --peer-tls
// in one command, and "--peer-tls" is --tls in another.
std::string AlikeOptions(const CLI::App& command, const std::string& unknown) {
  const std::set<std::string> words = WordsOf(unknown);
  std::string alike;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    const auto has = [&](const std::string& word) { return words.contains(word); };
    if (!name.starts_with("--") || !std::ranges::any_of(WordsOf(name), has)) continue;
    alike += (alike.empty() ? "" : ", ") + name;
  }
  return alike.empty() ? "" : " (there is " + alike + ")";
}

std::string NearestOption(const CLI::App& command, const std::string& unknown) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) names.push_back(option->get_name());
  return tactus::DidYouMean(unknown.substr(0, unknown.find('=')), names);
}

std::string NearestCommand(const CLI::App& app, const std::string& unknown) {
  std::vector<std::string> names;
  for (const CLI::App* each : app.get_subcommands({})) names.push_back(each->get_name());
  return tactus::DidYouMean(unknown, names);
}

// "tactus plan gpulet" of a line that calls it.
std::string CalledAs(const CLI::App& app) {
  const CLI::App* command = &app;
  std::string name = "tactus";
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  return name;
}

// What the line says of a word that no command or option takes.
std::string Unknown(const CLI::App& app, const std::vector<std::string>& words) {
  const auto is_option = [](const std::string& word) { return word.starts_with("--"); };
  const auto option = std::ranges::find_if(words, is_option);
  const CLI::App* command = &app;
  std::string name;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += command->get_name() + " ";
  }
  if (option == words.end() || command == &app) {
    return "there is no command '" + words.front() + "'" + NearestCommand(*command, words.front()) +
           "; " + name + "--help lists them\n";
  }
  const std::string alike = AlikeOptions(*command, *option);
  return "there is no option '" + *option + "'" +
         (alike.empty() ? NearestOption(*command, *option) : "") + "; " + name +
         "--help lists them" + alike + "\n";
}

// The library's words for an option that is given more often than once are of its own arguments.
std::string OnceOnly(std::string said) {
  constexpr std::string_view kTooMany = ": At Most 1 required but received ";
  const std::size_t at = said.find(kTooMany);
  if (at == said.npos) return said;
  return said.substr(0, at) + " is given " + said.substr(at + kTooMany.size()) +
         " times; give it once";
}

// One line, as every other bad input gets.
std::string BadOption(const CLI::App* app, const CLI::Error& error) {
  const std::vector<std::string> unknown = app->remaining(true);
  const bool missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const bool option =
      std::ranges::any_of(unknown, [](const std::string& word) { return word.starts_with("--"); });
  const std::string begin = CalledAs(*app) + ": ";
  if (!unknown.empty() && (missing || (extra && option))) return begin + Unknown(*app, unknown);
  const bool value = dynamic_cast<const CLI::ValidationError*>(&error) != nullptr;
  const std::string said = missing ? Missing(app, error.what()) : OnceOnly(error.what());
  return begin + said + (value ? "\n" : "; --help explains\n");
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

// "tactus help serve" is "tactus serve --help", as many expect.
std::vector<std::string> WithoutHelpCommand(CLI::App& app, std::vector<std::string> words) {
  if (words.size() < 2 || words[1] != "help") return words;
  words.erase(words.begin() + 1);
  // An unknown command stays alone: with --help, the parser would print the whole program's.
  const auto is_it = [&](const CLI::App* command) { return command->check_name(words[1]); };
  if (words.size() > 1 && std::ranges::none_of(app.get_subcommands({}), is_it)) return words;
  words.push_back("--help");
  return words;
}

// Says why what was printed did not arrive, as in a file that it was redirected into.
int NotPrinted(int error) {
  std::clearerr(stdout);
  tactus::PrintError("cannot write the standard output: " + tactus::WhyNotWritten(error));
  return 1;
}

// 0 to 2: what main returns.
int Parse(CLI::App& app, const std::vector<std::string>& words) {
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  try {
    app.parse(static_cast<int>(argv.size()), argv.data());
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::bad_alloc&) {
    tactus::PrintError("there is not enough memory for this");
    return 1;
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0) return NotPrinted(error.code().value());
    if (error.code() != std::errc::resource_unavailable_try_again) throw;
    tactus::PrintError("there is not enough memory for another thread, or their number is limited");
    return 1;
  }
}

// The help lists the commands that it adds under the heading.
template <class... Add>
void AddGroup(const char* heading, CLI::App& app, tactus::CommandContext& context, Add... add) {
  const std::size_t before = app.get_subcommands({}).size();
  (add(app, context), ...);
  const std::vector<CLI::App*> all = app.get_subcommands({});
  for (std::size_t i = before; i < all.size(); ++i) all[i]->group(heading);
}

// A program for the demo alone has only these (apps/CMakeLists.txt).
#ifdef TACTUS_SERVING_ONLY
void AddCommands(CLI::App& app, tactus::CommandContext& context) {
  AddGroup("Commands", app, context, tactus::AddProfile, tactus::AddServe, tactus::AddLoad,
           tactus::AddPolicies);
  app.footer("The other commands are in build/release/apps/tactus: ./run build");
}
#else
void AddCommands(CLI::App& app, tactus::CommandContext& context) {
#ifdef TACTUS_SERVER  // these read model folders, or speak to servers
  AddGroup("Serve your models", app, context, tactus::AddInit, tactus::AddCheck, tactus::AddProfile,
           tactus::AddServe, tactus::AddLoad, tactus::AddStream);
#else
  tactus::AddCheck(app, context);
#endif
  AddGroup("Try it first, in virtual time", app, context, tactus::AddSimulate, tactus::AddCompare,
           tactus::AddGoodput, tactus::AddPlan, tactus::AddPolicies);
#ifdef TACTUS_SERVER
  AddGroup("Several machines", app, context, tactus::AddScheduler, tactus::AddFrontEnd,
           tactus::AddCluster, tactus::AddController, tactus::AddAgent);
  AddGroup("Look back", app, context, tactus::AddExplain, tactus::AddTrace, tactus::AddReplay,
           tactus::AddMeasure, tactus::AddFit);
#else
  AddGroup("Look back", app, context, tactus::AddExplain, tactus::AddTrace, tactus::AddReplay,
           tactus::AddFit);
#endif
  tactus::AddDescribe(app, context);
  app.footer(
      "For example:\n"
      "  tactus check --models models\n"
      "  tactus profile --models models\n"
      "  tactus serve --models models --profile profile.json\n"
      "  tactus load --models NAME --random --rate 20 --duration 10\n"
      "\n`tactus help COMMAND` explains a command.");
}
#endif

}  // namespace

int tactus::ReportBadInput(const Error& error) {
  PrintError(error.message);
  return 2;
}

int main(int argc, char** argv) {
  // A file that may not grow (ulimit -f) is an error of what writes it, and ends nothing.
  std::signal(SIGXFSZ, SIG_IGN);
#ifdef TACTUS_SERVER
  tactus::RunIfEngineProcess(argc, argv);
  // gRPC's mutexes are absl's, which Debian builds with its search for deadlocks on: that takes a
  // lock of the whole process, twice, with every mutex.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
  // What gRPC logs by itself repeats, at length, what its calls return.
  ::setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  if (const auto columns = tactus::OutputColumns()) tactus::TextTable::SetWidth(*columns);
  CLI::App app{"Tactus serves many models on one machine or several, and meets their deadlines."};
  app.formatter(std::make_shared<tactus::HelpFormat>());  // the commands inherit it
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.require_subcommand(1);
  app.failure_message(BadOption);
  app.set_version_flag("--version", std::string("tactus ") + tactus::kProgramVersion + ", commit " +
                                        tactus::BuildCommit());
  std::string called_as;
  // Before the command's own callback, which runs it.
  app.parse_complete_callback([&app, &called_as] {
    tactus::RefuseSharedFiles(app);
    called_as = CalledAs(app);
    program_invocation_short_name = called_as.data();  // base/error_line.h
  });
  tactus::CommandContext context;
  AddCommands(app, context);
  RefuseWhatIsNoNumber(app);
  if (argc < 2) {
    fmt::print(stderr, "{}", app.help());
    return 2;
  }
  const auto words = tactus::WithConfigFile(
      app, WithoutHelpCommand(app, std::vector<std::string>(argv, argv + argc)));
  if (!words) {
    called_as = "tactus " + std::string(argv[1]);
    program_invocation_short_name = called_as.data();
    return tactus::ReportBadInput(words.error());
  }
  const int failed = Parse(app, *words);
  const int code = failed != 0 ? failed : context.exit_code;
  return std::fflush(stdout) == 0 ? code : std::max(code, NotPrinted(errno));
}
