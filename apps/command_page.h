// The command line as data, taken from what the commands declare of themselves: what manual pages
// and shell completions are made of. Nothing in them is written a second time.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/expected.h"

namespace tactus {

struct OptionPage {
  std::vector<std::string> names;    // with their dashes; none: it is positional
  std::string value;                 // what stands for its value: HOST:PORT, FILE; empty: a flag
  std::vector<std::string> choices;  // the only values that it takes, if they can be listed
  std::string bounds;                // in words, of a number's
  std::string description;
  std::string initial;  // what holds where it is not given; empty: nothing does
  std::string group;    // "Options" where it has none of its own
  bool folder = false;  // its value is one
  bool required = false;
};

struct CommandPage {
  std::vector<std::string> words;  // of the command line: tactus, cluster, up
  std::string description;
  std::string footer;
  std::vector<OptionPage> options;    // in the order of --help; positional ones are among them
  std::vector<CommandPage> commands;  // without those that --help does not show
};

// Of the whole program; `app` has every command.
CommandPage PageOf(const CLI::App& app);

// "tactus cluster up" with " ", "tactus-cluster-up" with "-".
std::string Joined(const std::vector<std::string>& words, const char* between);

// The manual page of one command and all below it, in roff's man macros.
std::string ManualPage(const CommandPage& page, const std::string& version);

// What the shell reads. InvalidArgument names those that there are: bash, zsh, fish.
Expected<std::string> CompletionScript(const std::string& shell, const CommandPage& page);

}  // namespace tactus
