// Coefficients of the function unit (function_unit.h).
#pragma once

#include <cstdint>

namespace tile {

/// A parabola: value, slope and curvature at the left end of the piece.
struct UnitPiece {
  int32_t value, slope, curvature;
};

extern const UnitPiece kReciprocal[128], kInverseRoot[128], kRoot[128], kPowerOfTwo[64], kHyperbolicTangent[51];

}  // namespace tile
