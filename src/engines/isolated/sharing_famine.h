// Whether memory that processes share can be had: it takes descriptors, files of its size (ulimit
// -f) and memory, each of which may run out while a server runs.
#pragma once

#include <cstddef>

namespace tactus {

class SharingFamine {
 public:
  // So many bytes could not be had, and a batch was refused for it; `purpose` is what they were
  // for. Thread-safe, as are the others.
  static void Note(std::size_t bytes, const void* purpose);
  // A batch has run that had so many for `purpose`: what was noted of it is past, if no more.
  static void Had(std::size_t bytes, const void* purpose);
  // Whether what was noted last still cannot be had: it is tried again. False before.
  static bool Lasts();
};

}  // namespace tactus
