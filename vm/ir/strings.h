// Interned byte strings of a module.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "vm/ir/ids.h"

namespace tile {

class StringTable {
 public:
  StringTable() = default;
  StringTable(const StringTable& o) { *this = o; }
  StringTable(StringTable&&) = default;
  StringTable& operator=(StringTable&&) = default;
  StringTable& operator=(const StringTable& o) {
    if (this == &o) return *this;
    items_.clear();
    index_.clear();
    for (const std::string& s : o.items_) (void)add(s);
    return *this;
  }
  StringId add(std::string_view s) {
    if (const auto it = index_.find(s); it != index_.end()) return it->second;
    const StringId id = static_cast<StringId>(items_.size());
    index_.emplace(items_.emplace_back(s), id);
    return id;
  }
  [[nodiscard]] std::string_view get(StringId id) const { return items_[id]; }
  [[nodiscard]] size_t size() const { return items_.size(); }

 private:
  std::deque<std::string> items_;  // a deque keeps the views in index_ valid
  std::unordered_map<std::string_view, StringId> index_;
};

}  // namespace tile
