// What a command says on stderr: one line that begins with the program's name, as error(3) does.
// `tactus` adds the command to that name: "tactus simulate: MESSAGE".
#pragma once

#include <string_view>

namespace tactus {

void PrintError(std::string_view message);
void PrintWarning(std::string_view message);  // "tactus simulate: warning: MESSAGE"

}  // namespace tactus
