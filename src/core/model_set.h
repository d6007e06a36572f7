// Which models a lane may run.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace tactus {

class ModelSet {
 public:
  static ModelSet All() { return ModelSet(); }
  static ModelSet None(std::size_t models) {
    ModelSet set;
    set.all_ = false;
    set.words_.assign((models + 63) / 64, 0);
    return set;
  }

  bool operator==(const ModelSet&) const = default;

  void Insert(ModelId m) { words_[m.value() / 64] |= std::uint64_t{1} << (m.value() % 64); }
  bool contains(ModelId m) const {
    return all_ || ((words_[m.value() / 64] >> (m.value() % 64)) & 1) != 0;
  }

 private:
  bool all_ = true;
  std::vector<std::uint64_t> words_;
};

}  // namespace tactus
