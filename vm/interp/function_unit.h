// A model of the function unit of an H200: the approximate functions of one instruction each, from the bits of an f32 to those of the
// result. Not what compilers make of operations with them (numerics_h200_functions.cpp).
#pragma once

#include <cstdint>

namespace tile {

// Subnormal operands count as zeros of their sign, and what would be subnormal is a zero, except in unit_hyperbolic_tangent().
[[nodiscard]] uint32_t unit_reciprocal(uint32_t x);
[[nodiscard]] uint32_t unit_root(uint32_t x);
[[nodiscard]] uint32_t unit_inverse_root(uint32_t x);
[[nodiscard]] uint32_t unit_power_of_two(uint32_t x);
[[nodiscard]] uint32_t unit_hyperbolic_tangent(uint32_t x);

}  // namespace tile
