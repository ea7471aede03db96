// Changes to inputs that know their form: random ones of libFuzzer rarely get past the outermost checks. All of them
// leave part of the work to libFuzzer's own changes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tile::fuzz {

/// Words of one kind for another (operations, element types, enumerators from the operation table), numbers, lines
/// dropped, doubled and swapped.
size_t mutate_text(uint8_t* data, size_t size, size_t max_size, unsigned seed);
/// An aligned number becomes a small one, a neighbour of itself or another number of the file, which keeps offsets
/// whole.
size_t mutate_tilebc(uint8_t* data, size_t size, size_t max_size, unsigned seed);
/// One section's payload changes and its length with it; or a varint of the payload becomes another of its length.
size_t mutate_tileirbc(uint8_t* data, size_t size, size_t max_size, unsigned seed);
/// By the form that the bytes have.
size_t mutate_any(uint8_t* data, size_t size, size_t max_size, unsigned seed);

}  // namespace tile::fuzz
