// While it lives, no file of this process may grow beyond so many bytes (ulimit -f).
#pragma once

#include <csignal>
#include <cstdint>

#include <sys/resource.h>

namespace tactus {

class SmallFiles {
 public:
  explicit SmallFiles(std::uint64_t most) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{most, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

}  // namespace tactus
