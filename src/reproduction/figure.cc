#include "reproduction/figure.h"

#include <algorithm>

#include <fmt/format.h>

namespace tactus {
namespace {

constexpr std::string_view kTable = "table";

}  // namespace

std::string StemOf(const std::string& id) {
  return id.starts_with(kTable) ? id : fmt::format("fig{:0>2}", id);
}

std::string Figure::Heading() const {
  if (id.starts_with(kTable)) return "Table " + id.substr(kTable.size());
  return "Figure " + id;
}

std::string Figure::Stem() const { return StemOf(id); }

int Figure::Seeds(const ReproduceOptions& options) const {
  return most_seeds > 0 ? std::min(most_seeds, options.seeds) : options.seeds;
}

}  // namespace tactus
