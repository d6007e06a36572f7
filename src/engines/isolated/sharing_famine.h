// Whether memory that processes share can be had: it takes descriptors, files of its size (ulimit
// -f) and memory, each of which may run out while a server runs.
#pragma once

#include <cstddef>

namespace tactus {

class SharingFamine {
 public:
  // So many bytes could not be had. Thread-safe, as is the other.
  static void Note(std::size_t bytes);
  // Whether they still cannot: they are tried again. False before.
  static bool Lasts();
};

}  // namespace tactus
