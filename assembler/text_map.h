// A hash table from pieces of the input text to numbers, for the few lookups that the parser makes at every token.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace tile {

/// Keys are views that outlive the map. kMissing is no value.
class TextMap {
 public:
  static constexpr uint32_t kMissing = 0xFFFFFFFFu;

  [[nodiscard]] uint32_t find(std::string_view key) const {
    const uint64_t h = hash(key);
    for (size_t i = h & mask_;; i = (i + 1) & mask_) {
      const Slot& s = slots_[i];
      if (s.value == kMissing) return kMissing;
      if (s.tag == static_cast<uint32_t>(h >> 32) && s.length == key.size() &&
          std::memcmp(s.key, key.data(), key.size()) == 0)
        return s.value;
    }
  }

  /// The key must not be in the map.
  void insert(std::string_view key, uint32_t value) {
    if (++count_ * 2 > slots_.size()) grow();
    put({key.data(), static_cast<uint32_t>(hash(key) >> 32), static_cast<uint32_t>(key.size()), value}, hash(key));
  }

 private:
  struct Slot {
    const char* key = nullptr;
    uint32_t tag = 0, length = 0;
    uint32_t value = kMissing;
  };

  static uint64_t mix(uint64_t h, uint64_t word) {
    h = (h ^ word) * 0x9FB21C651E98DF25ull;
    return h ^ h >> 32;
  }
  static uint64_t hash(std::string_view key) {
    uint64_t h = key.size() * 0x9E3779B97F4A7C15ull;
    size_t i = 0;
    for (; i + 8 <= key.size(); i += 8) {
      uint64_t word;
      std::memcpy(&word, key.data() + i, 8);
      h = mix(h, word);
    }
    uint64_t rest = 0;
    for (; i < key.size(); ++i) rest = rest << 8 | static_cast<uint8_t>(key[i]);
    return mix(mix(h, rest), h >> 7);
  }

  void put(const Slot& slot, uint64_t h) {
    size_t i = h & mask_;
    while (slots_[i].value != kMissing) i = (i + 1) & mask_;
    slots_[i] = slot;
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    mask_ = slots_.size() - 1;
    for (const Slot& s : old)
      if (s.value != kMissing) put(s, hash({s.key, s.length}));
  }

  std::vector<Slot> slots_ = std::vector<Slot>(256);
  size_t mask_ = 255;
  size_t count_ = 0;
};

}  // namespace tile
