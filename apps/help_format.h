// How the help of a command looks. Includes CLI11: for apps only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

namespace tactus {

// Of the terminal, or COLUMNS; nothing where neither is known.
std::optional<std::size_t> OutputColumns();

// Shows what the library leaves out: the default and REQUIRED of an option whose value we describe.
// Groups whose names end with kMoreOptions show in --help-all alone, and kUsualOptions comes first.
// Lines fit the terminal, or COLUMNS, or 80 columns where neither is known.
class HelpFormat : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_option_opts(const CLI::Option* option) const override;

 private:
  std::string Groups(const CLI::App& app, CLI::AppFormatMode mode) const;
};

}  // namespace tactus
