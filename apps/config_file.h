// A file of options (--config): what stands in it is put behind the words of the command line.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/expected.h"

namespace tactus {

// For a command that takes many options.
void DeclareConfigFile(CLI::App& command);

// The words of the command line, and an option for each line `name = value` (TOML, without
// sections) of the file that it names, but for options that it states itself. `app` has the
// commands. As given where no file is named, or where the command takes none. kInvalidArgument
// names the file and the option.
Expected<std::vector<std::string>> WithConfigFile(const CLI::App& app,
                                                  std::vector<std::string> words);

}  // namespace tactus
