// tactus man: manual pages of all commands, made from what each declares.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include <fmt/format.h>

#include "base/nearest.h"
#include "command_page.h"
#include "commands.h"
#include "metrics/report.h"

namespace tactus {
namespace {

// Text as roff shows it unchanged: no command at a line's start, no escape, hyphens as minus.
std::string Roff(const std::string& text) {
  std::string roff;
  for (const char c : text) {
    const bool begins = roff.empty() || roff.back() == '\n';
    if (begins && (c == '.' || c == '\'')) roff += "\\&";
    if (c == '\\') {
      roff += "\\e";
    } else if (c == '-') {
      roff += "\\-";
    } else {
      roff += c;
    }
  }
  return roff;
}

std::string RoffNames(const OptionPage& option) {
  std::string names;
  for (const std::string& name : option.names) {
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", Roff(name));
  }
  if (option.value.empty()) return names;
  return fmt::format("{}{}\\fI{}\\fR", names, names.empty() ? "" : " ", Roff(option.value));
}

std::string RoffEntry(const OptionPage& option) {
  std::string text = option.description;
  const auto add = [&text](const std::string& more) {
    if (!text.empty() && !text.ends_with('.')) text += '.';
    text += (text.empty() ? "" : " ") + more + ".";
  };
  if (option.required) add("Required");
  if (!option.choices.empty()) add("One of " + CLI::detail::join(option.choices, ", "));
  if (!option.bounds.empty()) add("Allowed: " + option.bounds);
  if (!option.initial.empty()) add("Default: " + option.initial);
  return fmt::format(".TP\n{}\n{}\n", RoffNames(option), Roff(text));
}

std::string RoffSynopsis(const CommandPage& page) {
  std::string line = fmt::format("\\fB{}\\fR", Roff(Joined(page.words, " ")));
  for (const OptionPage& option : page.options) {
    if (option.required && !option.names.empty()) line += " " + RoffNames(option);
  }
  line += " [\\fIOPTION\\fR]...";
  for (const OptionPage& option : page.options) {
    if (!option.names.empty()) continue;
    const std::string name = fmt::format("\\fI{}\\fR", Roff(option.value));
    line += option.required ? " " + name : " [" + name + "]";
  }
  return line + (page.commands.empty() ? "" : " \\fICOMMAND\\fR ...") + "\n";
}

// `heading` is the macro of its groups of options.
std::string OptionEntries(const CommandPage& page, const char* heading) {
  std::string text;
  std::set<std::string> done;
  for (const OptionPage& first : page.options) {
    if (!done.insert(first.group).second) continue;
    if (first.group != "Options") text += fmt::format("{} \"{}\"\n", heading, Roff(first.group));
    for (const OptionPage& option : page.options) {
      if (option.group == first.group) text += RoffEntry(option);
    }
  }
  return text;
}

// A command of commands: each of them a section of its page.
std::string RoffBelow(const CommandPage& page) {
  std::string text;
  for (const CommandPage& each : page.commands) {
    text += fmt::format(".SH \"{}\"\n{}{}.PP\n{}\n", Roff(Joined(each.words, " ")),
                        RoffSynopsis(each), OptionEntries(each, ".SS"), Roff(each.description));
    if (!each.footer.empty()) text += fmt::format(".PP\n{}\n", Roff(each.footer));
    text += RoffBelow(each);
  }
  return text;
}

std::string RoffCommands(const CommandPage& program) {
  std::string text = ".SH COMMANDS\n";
  for (const CommandPage& each : program.commands) {
    text += fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", Roff(Joined(each.words, "-")),
                        Roff(each.description));
  }
  return text;
}

// False where the file system refuses; errno says why.
bool WritePage(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  out.close();
  return out.good();
}

int WritePages(const CommandPage& program, const std::filesystem::path& folder) {
  std::error_code refused;
  std::filesystem::create_directories(folder, refused);
  std::vector<const CommandPage*> pages = {&program};
  for (const CommandPage& each : program.commands) pages.push_back(&each);
  for (const CommandPage* page : pages) {
    const auto file = folder / (Joined(page->words, "-") + ".1");
    if (WritePage(file, ManualPage(*page, kProgramVersion))) continue;
    return ReportBadInput({ErrorCode::kInvalidArgument,
                           fmt::format("{}: cannot be written ({}); is --out a writable folder?",
                                       file.string(), std::strerror(errno))});
  }
  return 0;
}

int PrintPage(const CommandPage& program, const std::string& command) {
  const auto same = [&](const CommandPage& page) { return page.words.back() == command; };
  const auto found = std::ranges::find_if(program.commands, same);
  if (!command.empty() && found == program.commands.end()) {
    std::vector<std::string> names;
    for (const CommandPage& page : program.commands) names.push_back(page.words.back());
    return ReportBadInput(
        {ErrorCode::kInvalidArgument, fmt::format("there is no command '{}'{}; --help lists them",
                                                  command, DidYouMean(command, names))});
  }
  fmt::print("{}", ManualPage(command.empty() ? program : *found, kProgramVersion));
  return 0;
}

}  // namespace

std::string ManualPage(const CommandPage& page, const std::string& version) {
  const bool whole = page.words.size() == 1;
  std::string text = fmt::format(
      ".TH \"{}\" 1 \"\" \"Tactus {}\" \"Tactus\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}",
      Roff(CLI::detail::to_lower(Joined(page.words, "-"))), version, Roff(Joined(page.words, "-")),
      Roff(page.description), RoffSynopsis(page));
  if (!page.footer.empty()) text += ".SH DESCRIPTION\n" + Roff(page.footer) + "\n";
  text += ".SH OPTIONS\n" + OptionEntries(page, ".SS");
  text += whole ? RoffCommands(page) : RoffBelow(page);
  text +=
      ".SH EXIT STATUS\n0: done. 1: it ran, and something failed. 2: the command line or a file "
      "is wrong; one line on standard error says what, and the remedy.\n";
  if (whole) {
    text += ".SH FILES\n/etc/tactus/*.env: what the services of systemd are told.\n";
  } else {
    text += ".SH SEE ALSO\n\\fBtactus\\fR(1)\n";
  }
  return text;
}

void AddMan(CLI::App& app, CommandContext& context) {
  struct Flags {
    std::string command;
    std::string out;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("man", "Print a command's manual page, or write all");
  command->add_option("command", flags->command, "The command (default: the program itself)");
  command->add_option("--out", flags->out, "Folder in which to write the pages of all commands");
  command->callback([flags, &app, &context] {
    const CommandPage program = PageOf(app);
    context.exit_code =
        flags->out.empty() ? PrintPage(program, flags->command) : WritePages(program, flags->out);
  });
}

}  // namespace tactus
