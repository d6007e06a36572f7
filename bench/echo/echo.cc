// tactus_echo: runs both echo servers until its standard input ends, and prints their ports first.
#include "echo/echo.h"

#include <cstdio>
#include <string_view>

#include <fmt/format.h>
#include <malloc.h>

namespace tactus::echo {

const EchoModel* FindModel(const std::string& name) {
  for (const EchoModel& model : kModels) {
    if (name == model.name) return &model;
  }
  return nullptr;
}

}  // namespace tactus::echo

int main() {
  // As `tactus serve` does: without it glibc maps and unmaps each large tensor.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  mallopt(M_TOP_PAD, 16 << 20);
  const auto grpc = tactus::echo::StartGrpcEcho();
  const auto http = tactus::echo::StartHttpEcho();
  if (!grpc || !http) {
    fmt::print(stderr, "tactus_echo: cannot listen on 127.0.0.1\n");
    return 1;
  }
  fmt::print("http {} grpc {}\n", http->port(), grpc->port());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
