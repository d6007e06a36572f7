// Why a file could not be written, with the remedy where there is one.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>

namespace tactus {

// Of an `errno`.
inline std::string WhyNotWritten(int error) {
  if (error == EFBIG) {
    return "it would be larger than this process may write (ulimit -f), or its file system takes";
  }
  const bool full = error == ENOSPC || error == EDQUOT;
  return std::string(std::strerror(error)) + (full ? "; make room there" : "");
}

}  // namespace tactus
