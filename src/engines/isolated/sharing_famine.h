// Whether memory that processes share can be had: it takes descriptors, files of its size (ulimit
// -f) and memory, each of which may run out while a server runs.
#pragma once

namespace tactus {

class SharingFamine {
 public:
  // None could be had. Thread-safe, as is the other.
  static void Note();
  // Whether it still cannot: what was noted is tried again with a small piece. False before.
  static bool Lasts();
};

}  // namespace tactus
