// Which of many points no other one beats, where a point beats every one that is nowhere larger.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace tactus {

inline constexpr std::size_t kFrontDimensions = 6;  // unused ones are 0
using FrontPoint = std::array<double, kFrontDimensions>;

inline bool Beats(const FrontPoint& a, const FrontPoint& b) {
  for (std::size_t d = 0; d < kFrontDimensions; ++d) {
    if (a[d] < b[d]) return false;
  }
  return true;
}

// Points in a tree whose nodes know their points' largest coordinates, so that what cannot be large
// enough is passed over by the thousand.
class PointTree {
 public:
  struct Entry {
    FrontPoint point{};
    std::size_t number = 0;  // the caller's
  };

  PointTree() = default;
  explicit PointTree(std::vector<Entry> entries);

  const std::vector<Entry>& entries() const { return entries_; }

  // Calls `at` with the entries of all nodes whose largest coordinates `enter` lets pass, until it
  // returns true, and returns whether it did.
  template <class Enter, class At>
  bool Walk(const Enter& enter, const At& at) const {
    return !nodes_.empty() && Walk(0, enter, at);
  }

 private:
  static constexpr std::size_t kLeaf = 8;

  // Over entries [begin, end). The first half is the next node.
  struct Node {
    FrontPoint most{};
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t second_half = 0;  // 0: a leaf
  };

  std::size_t Build(std::size_t begin, std::size_t end);

  template <class Enter, class At>
  bool Walk(std::size_t at_node, const Enter& enter, const At& at) const {
    const Node& node = nodes_[at_node];
    if (!enter(node.most)) return false;
    if (node.second_half != 0) {
      return Walk(at_node + 1, enter, at) || Walk(node.second_half, enter, at);
    }
    for (std::size_t i = node.begin; i < node.end; ++i) {
      if (at(entries_[i])) return true;
    }
    return false;
  }

  std::vector<Entry> entries_;
  std::vector<Node> nodes_;
};

// Points that are added one by one: in trees each of which is twice as large as the one before.
class Front {
 public:
  void Add(const FrontPoint& point);
  // The number, in the order of adding, of a point that beats this one.
  std::optional<std::size_t> WhoBeats(const FrontPoint& point) const;

 private:
  static constexpr std::size_t kFresh = 16;

  std::vector<PointTree::Entry> fresh_;  // in no tree yet
  std::vector<PointTree> trees_;         // tree i is empty or has kFresh 2^i points
  std::size_t size_ = 0;
};

// The numbers of those that no other one beats, the largest sum first; of equal ones, the first.
std::vector<std::size_t> Unbeaten(std::span<const FrontPoint> points);

}  // namespace tactus
