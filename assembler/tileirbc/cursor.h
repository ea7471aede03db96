// A position in the bytes of a file that never leaves them, and the primitive codings read at it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "vm/base/diagnostics.h"

namespace tile::tileirbc {

/// Where reading stands, for diagnostics. Every read function returns false after reporting through fail().
struct ReadContext {
  Diagnostics* diags;
  std::string file;
  std::string function = {};
  int64_t instruction = -1;
  std::string_view op = {};
  int padding = -1;            ///< value of the padding bytes so far; -1 before the first
  bool mixed_padding = false;  ///< they are not all equal

  void saw_padding(uint8_t b) {
    mixed_padding |= padding >= 0 && padding != b;
    padding = b;
  }

  bool fail(Code code, size_t offset, std::string message) {
    Place place;
    place.file = file;
    place.byte_offset = static_cast<int64_t>(offset);
    place.function = function;
    place.instruction = instruction;
    place.op = op;
    (void)diags->error(code, std::move(place), std::move(message));
    return false;
  }
};

class Cursor {
 public:
  Cursor(ReadContext& context, std::span<const uint8_t> file, size_t begin, size_t end)
      : context_(&context), file_(file.data()), pos_(begin), end_(end) {}

  [[nodiscard]] size_t pos() const { return pos_; }
  [[nodiscard]] size_t left() const { return end_ - pos_; }
  bool fail(Code code, size_t offset, std::string message) const {
    return context_->fail(code, offset, std::move(message));
  }

  bool byte(uint8_t& out, const char* what) {
    if (pos_ == end_) return truncated(what);
    out = file_[pos_++];
    return true;
  }
  /// LEB128 of at most ten bytes; bits beyond 64 are dropped, as every reader of the format does.
  bool varint(uint64_t& out, const char* what) {
    const size_t start = pos_;
    out = 0;
    for (unsigned i = 0; i < 10; ++i) {
      if (pos_ == end_) return truncated(what);
      const uint8_t b = file_[pos_++];
      out |= static_cast<uint64_t>(b & 0x7F) << (7 * i);
      if (b < 0x80) return true;
    }
    return fail(Code::E0104, start, "the variable-length integer for " + std::string(what) + " has more than 10 bytes");
  }
  bool zigzag(int64_t& out, const char* what) {
    uint64_t u;
    if (!varint(u, what)) return false;
    out = static_cast<int64_t>((u >> 1) ^ (0 - (u & 1)));
    return true;
  }
  /// A varint that must fit 32 bits; `code` says what it is part of.
  bool varint32(uint32_t& out, Code code, const char* what) {
    const size_t start = pos_;
    uint64_t u;
    if (!varint(u, what)) return false;
    if (u > UINT32_MAX)
      return fail(code, start, std::string(what) + " is " + std::to_string(u) + ", expected at most 32 bits");
    out = static_cast<uint32_t>(u);
    return true;
  }
  /// A count of things that take at least `bytes_each` bytes of what is left.
  bool count(uint64_t& out, size_t bytes_each, Code code, const char* what) {
    const size_t start = pos_;
    if (!varint(out, what)) return false;
    if (out > left() / bytes_each) {
      return fail(code, start,
                  std::string(what) + " is " + std::to_string(out) + ", but only " + std::to_string(left()) +
                      " bytes are left");
    }
    return true;
  }
  /// A signed little-endian number of `width` bytes.
  bool fixed(int64_t& out, size_t width, const char* what) {
    if (left() < width) return truncated(what);
    const unsigned unused = static_cast<unsigned>(64 - 8 * width);
    out = static_cast<int64_t>(load(pos_, width) << unused) >> unused;
    pos_ += width;
    return true;
  }
  /// Moves to a multiple of `alignment` (a power of two) counted from `origin`.
  bool align(uint64_t alignment, size_t origin, const char* what) {
    const uint64_t padding = (0 - static_cast<uint64_t>(pos_ - origin)) & (alignment - 1);
    if (padding > left()) {
      pos_ = end_;
      return truncated(what);
    }
    for (uint64_t i = 0; i < padding; ++i) context_->saw_padding(file_[pos_++]);
    return true;
  }
  /// Cuts off the next `length` bytes, which the caller has compared with left().
  Cursor take(size_t length) {
    Cursor part = *this;
    part.end_ = pos_ + length;
    pos_ += length;
    return part;
  }
  [[nodiscard]] const uint8_t* data() const { return file_ + pos_; }
  [[nodiscard]] uint64_t load(size_t at, size_t width) const {
    uint64_t u = 0;
    for (size_t i = 0; i < width; ++i) u |= static_cast<uint64_t>(file_[at + i]) << (8 * i);
    return u;
  }

 private:
  bool truncated(const char* what) const {
    return fail(Code::E0101, pos_, "the bytes end before " + std::string(what));
  }

  ReadContext* context_;
  const uint8_t* file_;
  size_t pos_, end_;
};

}  // namespace tile::tileirbc
