// One subcommand per file: each adds itself to the parser and, when chosen, runs and throws
// nothing.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>

#include "base/expected.h"

namespace tactus {

// Every Add function registers a subcommand whose callback sets `exit_code`.
//   0: done; 1: it ran and something failed; 2: the command line or a file is wrong.
struct CommandContext {
  int exit_code = 0;
};

inline constexpr char kProgramVersion[] = "0.1.0";

// One line on stderr: "tactus COMMAND: MESSAGE". Returns the exit code of bad input, 2.
int ReportBadInput(const Error& error);

// Groups of options: the one that --help shows first, and the end of the names of those that only
// --help-all shows.
inline constexpr char kUsualOptions[] = "What you usually need";
inline constexpr char kMoreOptions[] = " (more)";

// How the help shows an option that takes several: the library's own "TEXT ..." reads as if spaces
// separated them.
inline constexpr char kCommaList[] = "A,B (commas, or the option again)";
inline constexpr char kSettings[] = "KEY=VALUE (the option again for more)";

// Of an option that takes seeds: those that a scenario may have. The library reads -1 as 2^64 - 1.
inline CLI::Validator SeedRange() {
  return CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 53).description("");
}
// Of --seeds, which is a count in every command: whoever writes a list is told so.
inline CLI::Validator SeedCount() {
  return {[](std::string& text) -> std::string {
            int count = 0;
            const char* const end = text.data() + text.size();
            const auto [rest, error] = std::from_chars(text.data(), end, count);
            if (error == std::errc{} && rest == end && count >= 1 && count <= 1000) return "";
            return "'" + text +
                   "' is no number of seeds from 1 to 1000: --seeds says how many "
                   "seeds run, one after the other, and takes no list of them";
          },
          "", ""};
}

// For numbers without a largest value, in place of the library's own: those print their bounds, and
// the largest double has 309 digits.
inline CLI::Validator NumberFrom(bool zero) {
  return {[zero](std::string& text) -> std::string {
            double value = 0;
            const bool number = CLI::detail::lexical_cast(text, value);
            if (number && (value > 0 || (zero && value == 0))) return "";
            return "'" + text + "' is no number " + (zero ? "from 0 on" : "above 0");
          },
          zero ? "NONNEGATIVE" : "POSITIVE", ""};
}
inline CLI::Validator AboveZero() { return NumberFrom(false); }
inline CLI::Validator NotBelowZero() { return NumberFrom(true); }

// An option with what its value has to be.
template <class Value>
CLI::Option* AddOption(CLI::App& command, const char* name, Value& value,
                       const CLI::Validator& check, const std::string& what) {
  return command.add_option(name, value, what)->check(check);
}

// In alphabetical order; main.cc calls each.
void AddAgent(CLI::App& app, CommandContext& context);
void AddCheck(CLI::App& app, CommandContext& context);
void AddCluster(CLI::App& app, CommandContext& context);
void AddClusterHistory(CLI::App& cluster, CommandContext& context);  // of AddCluster
void AddClusterUp(CLI::App& cluster, CommandContext& context);       // of AddCluster
void AddCompare(CLI::App& app, CommandContext& context);
void AddController(CLI::App& app, CommandContext& context);
void AddDescribe(CLI::App& app, CommandContext& context);
void AddFit(CLI::App& app, CommandContext& context);
void AddFrontEnd(CLI::App& app, CommandContext& context);
void AddGoodput(CLI::App& app, CommandContext& context);
void AddInit(CLI::App& app, CommandContext& context);
void AddLoad(CLI::App& app, CommandContext& context);
void AddMeasure(CLI::App& app, CommandContext& context);
void AddPlan(CLI::App& app, CommandContext& context);
void AddPlanFleet(CLI::App& plan, CommandContext& context);   // of AddPlan
void AddPlanGpulet(CLI::App& plan, CommandContext& context);  // of AddPlan
void AddPlanLanes(CLI::App& plan, CommandContext& context);   // of AddPlan
void AddPolicies(CLI::App& app, CommandContext& context);
void AddProfile(CLI::App& app, CommandContext& context);
void AddReplay(CLI::App& app, CommandContext& context);
void AddExplain(CLI::App& app, CommandContext& context);
void AddScheduler(CLI::App& app, CommandContext& context);
void AddServe(CLI::App& app, CommandContext& context);
void AddSimulate(CLI::App& app, CommandContext& context);
void AddStream(CLI::App& app, CommandContext& context);
void AddTrace(CLI::App& app, CommandContext& context);

}  // namespace tactus
