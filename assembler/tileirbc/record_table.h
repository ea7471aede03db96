// The bytes of a file or table under construction, and tables of records that are found by their content.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "assembler/tileirbc/wire.h"

namespace tile::tileirbc {

/// Bytes under construction, with the primitive codings.
class Bytes {
 public:
  void byte(uint8_t b) { out_.push_back(b); }
  void varint(uint64_t x) {
    for (; x > 0x7F; x >>= 7) byte(static_cast<uint8_t>(x | 0x80));
    byte(static_cast<uint8_t>(x));
  }
  void zigzag(int64_t x) { varint((static_cast<uint64_t>(x) << 1) ^ static_cast<uint64_t>(x >> 63)); }
  void fixed(uint64_t x, size_t width) {
    for (size_t i = 0; i < width; ++i) byte(static_cast<uint8_t>(x >> (8 * i)));
  }
  void align(size_t alignment, uint8_t padding = kPadding) {
    while (out_.size() % alignment != 0) byte(padding);
  }
  void append(const Bytes& o) { out_.insert(out_.end(), o.out_.begin(), o.out_.end()); }
  void append(std::string_view s) { out_.insert(out_.end(), s.begin(), s.end()); }
  template <class Tag>
  void tag(Tag t) {
    varint(static_cast<uint64_t>(t));
  }
  [[nodiscard]] size_t size() const { return out_.size(); }
  [[nodiscard]] std::string_view view() const { return {reinterpret_cast<const char*>(out_.data()), out_.size()}; }
  [[nodiscard]] std::string str() const { return std::string(view()); }
  [[nodiscard]] std::vector<uint8_t> take() { return std::move(out_); }

 private:
  std::vector<uint8_t> out_;
};

/// Records in the order of their first use, after those whose place is given; equal keys are one.
class RecordTable {
 public:
  /// The index of a record that is its own key.
  uint32_t add(std::string_view record);
  /// The index of a record that no other one equals and that is not looked for later.
  uint32_t add_unique(std::string_view record);
  /// Makes `n` empty records, for place().
  void reserve(size_t n);
  /// Gives record `at` its bytes. Of the records with one key the first that is placed is the one that add() finds;
  /// returns that one.
  uint32_t place(uint32_t at, std::string_view key, std::string_view record);
  /// For a record with a given place: what place() returned.
  [[nodiscard]] uint32_t standard(uint32_t at) const { return standard_[at]; }
  /// `wanted` if it means the same as `found`, which add() gave.
  [[nodiscard]] uint32_t choose(uint32_t found, uint32_t wanted) const {
    return wanted < standard_.size() && standard_[wanted] == found ? wanted : found;
  }
  [[nodiscard]] bool empty() const { return records_.empty(); }
  void write(Bytes& out, size_t width, uint8_t padding) const;

 private:
  struct Range {
    size_t begin = 0, size = 0;
  };
  struct Record {
    Range key, bytes;
    uint64_t hash = 0;
  };
  struct Slot {
    uint32_t tag = 0;     // of the hash, so that records with other keys are rarely looked at
    uint32_t record = 0;  // 0: free, else 1 + its index
  };
  static uint32_t tag(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  [[nodiscard]] std::string_view view(const Range& r) const { return std::string_view(arena_).substr(r.begin, r.size); }
  Range store(std::string_view s);
  /// The slot of the record with this key, or the free one where it belongs.
  Slot& find(std::string_view key, uint64_t hash);
  void grow(size_t records);

  std::string arena_;
  std::vector<Record> records_;
  std::vector<Slot> slots_;         // open addressing, at most half full
  size_t used_ = 0;                 // slots
  std::vector<uint32_t> standard_;  // of the records with a given place
};

}  // namespace tile::tileirbc
