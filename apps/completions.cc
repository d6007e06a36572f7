// tactus completions: what a shell reads to complete our command line, made from what the commands
// declare.
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "command_page.h"
#include "commands.h"

namespace tactus {
namespace {

// What a shell offers at one place.
struct CommandPlace {
  const CommandPage* page = nullptr;
  std::string words;  // "tactus cluster up"
};

void AddPlaces(const CommandPage& page, std::vector<CommandPlace>& places) {
  places.push_back({&page, Joined(page.words, " ")});
  for (const CommandPage& each : page.commands) AddPlaces(each, places);
}

std::vector<CommandPlace> PlacesOf(const CommandPage& program) {
  std::vector<CommandPlace> places;
  AddPlaces(program, places);
  return places;
}

// In single quotes, as all three shells read it.
std::string ShellQuoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// All places but the first, as a pattern of `case`.
std::string CommandPattern(const std::vector<CommandPlace>& places) {
  std::string pattern;
  for (std::size_t i = 1; i < places.size(); ++i) {
    pattern += (pattern.empty() ? "" : "|") + ShellQuoted(places[i].words);
  }
  return pattern;
}

// `case` clauses of bash and zsh for the word behind an option.
std::string ValueClauses(const std::vector<CommandPlace>& places, const char* choices,
                         const char* folders, const char* files) {
  std::string text;
  for (const CommandPlace& place : places) {
    for (const OptionPage& option : place.page->options) {
      if (option.names.empty() || option.value.empty()) continue;
      std::string pattern;
      for (const std::string& name : option.names) {
        pattern += (pattern.empty() ? "" : "|") + ShellQuoted(place.words + " " + name);
      }
      const std::string words = Joined(option.choices, " ");
      const std::string action = !words.empty()  ? fmt::format(fmt::runtime(choices), words)
                                 : option.folder ? folders
                                                 : files;
      text += fmt::format("    {}) {}; return ;;\n", pattern, action);
    }
  }
  return text;
}

std::string Bash(const std::vector<CommandPlace>& places) {
  std::string text = fmt::format(
      "# bash completion of tactus; made by `tactus completions bash`\n"
      "_tactus() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  local place=tactus i\n"
      "  COMPREPLY=()\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \"$place ${{COMP_WORDS[i]}}\" in\n"
      "      {}) place+=\" ${{COMP_WORDS[i]}}\" ;;\n"
      "      *) break ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$place $prev\" in\n",
      CommandPattern(places));
  text += ValueClauses(places, "mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$cur\")",
                       "mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")",
                       "mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")");
  text += "  esac\n  local words=\n  case $place in\n";
  for (const CommandPlace& place : places) {
    std::vector<std::string> words;
    for (const CommandPage& each : place.page->commands) words.push_back(each.words.back());
    for (const OptionPage& option : place.page->options) {
      words.insert(words.end(), option.names.begin(), option.names.end());
    }
    text += fmt::format("    {}) words='{}' ;;\n", ShellQuoted(place.words), Joined(words, " "));
  }
  return text +
         "  esac\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
         "  [ ${#COMPREPLY[@]} -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
         "}\n"
         "complete -o filenames -F _tactus tactus\n";
}

// NAME:DESCRIPTION, in which a colon of the name would end it.
std::string ZshEntry(const std::string& name, const std::string& description) {
  return ShellQuoted(name + ":" + description);
}

std::string Zsh(const std::vector<CommandPlace>& places) {
  std::string text = fmt::format(
      "#compdef tactus\n"
      "# zsh completion of tactus; made by `tactus completions zsh`\n"
      "_tactus() {{\n"
      "  local place=tactus i\n"
      "  local -a commands options\n"
      "  for ((i = 2; i < CURRENT; i++)); do\n"
      "    case \"$place $words[i]\" in\n"
      "      {}) place+=\" $words[i]\" ;;\n"
      "      *) break ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$place $words[CURRENT-1]\" in\n",
      CommandPattern(places));
  text += ValueClauses(places, "compadd -- {}", "_files -/", "_files");
  text += "  esac\n  case $place in\n";
  for (const CommandPlace& place : places) {
    text += fmt::format("    {})\n      commands=(", ShellQuoted(place.words));
    for (const CommandPage& each : place.page->commands) {
      text += "\n        " + ZshEntry(each.words.back(), each.description);
    }
    text += ")\n      options=(";
    for (const OptionPage& option : place.page->options) {
      for (const std::string& name : option.names) {
        text += "\n        " + ZshEntry(name, option.description);
      }
    }
    text += ") ;;\n";
  }
  return text +
         "  esac\n"
         "  if [[ $PREFIX == -* ]]; then _describe -o option options; return; fi\n"
         "  if (( ${#commands} )); then _describe command commands; return; fi\n"
         "  _files\n"
         "}\n"
         "if [ \"$funcstack[1]\" = _tactus ]; then _tactus \"$@\"; else compdef _tactus tactus; "
         "fi\n";
}

std::string Fish(const std::vector<CommandPlace>& places) {
  std::string text =
      "# fish completion of tactus; made by `tactus completions fish`\n"
      "function __tactus_at\n"
      "    set -l place tactus\n"
      "    for word in (commandline -opc)[2..-1]\n"
      "        switch \"$place $word\"\n"
      "            case";
  for (std::size_t i = 1; i < places.size(); ++i) text += " " + ShellQuoted(places[i].words);
  text +=
      "\n                set place \"$place $word\"\n"
      "            case '*'\n"
      "                break\n"
      "        end\n"
      "    end\n"
      "    test \"$place\" = \"$argv\"\n"
      "end\n";
  for (const CommandPlace& place : places) {
    const std::string at = fmt::format("complete -c tactus -n '__tactus_at {}'", place.words);
    for (const CommandPage& each : place.page->commands) {
      text +=
          fmt::format("{} -f -a {} -d {}\n", at, each.words.back(), ShellQuoted(each.description));
    }
    for (const OptionPage& option : place.page->options) {
      std::string names;
      for (const std::string& name : option.names) {
        names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (names.empty()) continue;
      const std::string values = !option.choices.empty()
                                     ? " -x -a " + ShellQuoted(Joined(option.choices, " "))
                                 : option.folder        ? " -x -a '(__fish_complete_directories)'"
                                 : option.value.empty() ? ""
                                                        : " -r";
      text += fmt::format("{}{}{} -d {}\n", at, names, values, ShellQuoted(option.description));
    }
  }
  return text;
}

}  // namespace

Expected<std::string> CompletionScript(const std::string& shell, const CommandPage& page) {
  const std::vector<CommandPlace> places = PlacesOf(page);
  if (shell == "bash") return Bash(places);
  if (shell == "zsh") return Zsh(places);
  if (shell == "fish") return Fish(places);
  return InvalidArgument(
      fmt::format("there are no completions for '{}', but for bash, zsh and fish", shell));
}

void AddCompletions(CLI::App& app, CommandContext& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completions", "Print a completion script for a shell");
  command->add_option("shell", *shell, "bash, zsh or fish")->required();
  command->callback([shell, &app, &context] {
    const auto script = CompletionScript(*shell, PageOf(app));
    context.exit_code = script ? 0 : ReportBadInput(script.error());
    if (script) fmt::print("{}", *script);
  });
}

}  // namespace tactus
