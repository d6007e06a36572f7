#include "base/error_line.h"

#include <cerrno>
#include <cstdio>

namespace tactus {
namespace {

void PrintLine(const char* kind, std::string_view message) {
  std::fprintf(stderr, "%s: %s%.*s\n", program_invocation_short_name, kind,
               static_cast<int>(message.size()), message.data());
}

}  // namespace

void PrintError(std::string_view message) { PrintLine("", message); }
void PrintWarning(std::string_view message) { PrintLine("warning: ", message); }

}  // namespace tactus
