// Work whose size a file or a client states may find no memory, and what it needs no room for
// another thread: that is its error, and ends nothing else.
#pragma once

#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "base/expected.h"

namespace tactus {

// What `work` returns, an Expected or a Status; kResourceExhausted with `what` where there is no
// memory or no thread for it. What the work had begun is undone by its destructors alone.
template <class Work>
auto WithMemory(const std::string& what, Work&& work) -> decltype(work()) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {  // more than any container can have
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) throw;
    return Fail(ErrorCode::kResourceExhausted,
                what + ": the system has no room for another thread (ulimit -u, -v; a pids limit)");
  }
  return Fail(ErrorCode::kResourceExhausted, what + ": there is no memory for it");
}

}  // namespace tactus
