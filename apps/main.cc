// tactus: one binary; `tactus COMMAND --help` explains each command.
#include "commands.h"

int main(int argc, char** argv) {
  CLI::App app{"Tactus serves many DNN models on few accelerators and meets their deadlines."};
  app.require_subcommand(1);
  tactus::CommandContext context;
  CLI11_PARSE(app, argc, argv);
  return context.exit_code;
}
