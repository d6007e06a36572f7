#include "reproduce/figure.h"

#include <algorithm>

#include <fmt/format.h>

namespace tactus {
namespace {

constexpr std::string_view kTable = "table";

}  // namespace

FigurePanel Lines(const std::string& y, const std::string& x_label, const std::string& y_label,
                  const std::string& group, const std::string& title) {
  FigurePanel panel;
  panel.y = y;
  panel.x_label = x_label;
  panel.y_label = y_label;
  panel.group = group;
  panel.title = title;
  return panel;
}

FigurePanel Lines(const std::string& y, const std::string& x_label, const std::string& y_label,
                  const std::string& group) {
  return Lines(y, x_label, y_label, group, group);
}

FigurePanel Bars(const std::string& y, const std::string& y_label) {
  FigurePanel panel = Lines(y, "", y_label);
  panel.bars = true;
  return panel;
}

std::string Figure::Heading() const {
  if (id.starts_with(kTable)) return "Table " + id.substr(kTable.size());
  return "Figure " + id;
}

std::string Figure::Stem() const {
  return id.starts_with(kTable) ? id : fmt::format("fig{:0>2}", id);
}

int Figure::Seeds(const ReproduceOptions& options) const {
  return most_seeds > 0 ? std::min(most_seeds, options.seeds) : options.seeds;
}

}  // namespace tactus
