// Which models a lane may run.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace tactus {

class ModelSet {
 public:
  static ModelSet All() { return ModelSet(); }
  // May hold `models` models, and holds none of them.
  static ModelSet None(std::size_t models) {
    ModelSet set;
    set.all_ = false;
    set.words_.assign((models + 63) / 64, 0);
    return set;
  }

  bool operator==(const ModelSet&) const = default;

  void Insert(ModelId m) { words_[m.value() / 64] |= std::uint64_t{1} << (m.value() % 64); }
  // False for a model beyond those that the set was made for.
  bool contains(ModelId m) const {
    if (all_) return true;
    const std::size_t word = m.value() / 64;
    return word < words_.size() && ((words_[word] >> (m.value() % 64)) & 1) != 0;
  }
  bool all() const { return all_; }
  // Ascending; nothing where all() says it.
  std::vector<ModelId> models() const {
    std::vector<ModelId> models;
    for (ModelId::rep m = 0; m < 64 * words_.size(); ++m) {
      if (contains(ModelId{m})) models.emplace_back(m);
    }
    return models;
  }

 private:
  bool all_ = true;
  std::vector<std::uint64_t> words_;
};

}  // namespace tactus
