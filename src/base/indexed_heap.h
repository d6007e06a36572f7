// A binary heap of ids 0 to n - 1, each with a key that can be changed or taken out in O(log n).
// Equal keys come in order of id, so its order is a function of what it holds. Nothing allocates
// after Resize.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tactus {

template <class Key>
class IndexedHeap {
 public:
  using Place = std::uint32_t;

  // Empties the heap.
  void Resize(std::size_t ids) {
    entries_.clear();
    entries_.reserve(ids);
    places_.assign(ids, kAbsent);
  }

  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  bool contains(std::uint32_t id) const { return places_[id] != kAbsent; }
  std::uint32_t top() const { return entries_.front().id; }
  const Key& top_key() const { return entries_.front().key; }

  // Adds the id, or gives it another key.
  void Put(std::uint32_t id, Key key) {
    Place at = places_[id];
    if (at == kAbsent) {
      at = static_cast<Place>(entries_.size());
      entries_.push_back({key, id});
    } else if (entries_[at].key == key) {
      return;
    }
    const Entry entry{key, id};
    if (!Rise(at, entry)) Sink(at, entry);
  }
  // Nothing when it is not there.
  void Erase(std::uint32_t id) {
    const Place at = places_[id];
    if (at == kAbsent) return;
    places_[id] = kAbsent;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (last.id == id) return;
    if (!Rise(at, last)) Sink(at, last);
  }

 private:
  static constexpr Place kAbsent = static_cast<Place>(-1);
  struct Entry {
    Key key;
    std::uint32_t id;
    bool operator<(const Entry& other) const {
      return key != other.key ? key < other.key : id < other.id;
    }
  };

  void Set(Place at, const Entry& entry) {
    entries_[at] = entry;
    places_[entry.id] = at;
  }
  // False when it does not move up; then it has no place yet.
  bool Rise(Place at, const Entry& entry) {
    const Place from = at;
    while (at > 0 && entry < entries_[(at - 1) / 2]) {
      Set(at, entries_[(at - 1) / 2]);
      at = (at - 1) / 2;
    }
    if (at == from) return false;
    Set(at, entry);
    return true;
  }
  void Sink(Place at, const Entry& entry) {
    const auto size = static_cast<Place>(entries_.size());
    for (Place child = 2 * at + 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && entries_[child + 1] < entries_[child]) ++child;
      if (!(entries_[child] < entry)) break;
      Set(at, entries_[child]);
      at = child;
    }
    Set(at, entry);
  }

  std::vector<Entry> entries_;
  std::vector<Place> places_;  // by id
};

}  // namespace tactus
