// Special rules of matrix products: element types that go together, and the shapes M x K, K x N, M x N.
#include "vm/validate/special.h"

namespace tile::validation {
namespace {

/// Accumulators by the element type of both sides.
struct AccRow {
  ElementSet sides, acc;
};
constexpr AccRow kAccumulators[] = {
    {set_of(ElementType::F8E4M3FN, ElementType::F8E5M2, ElementType::F16), set_of(ElementType::F16, ElementType::F32)},
    {set_of(ElementType::BF16, ElementType::TF32, ElementType::F32), set_of(ElementType::F32)},
    {set_of(ElementType::F64), set_of(ElementType::F64)},
    {set_of(ElementType::I8), set_of(ElementType::I32)},
};

/// Elements that share a scale, by the element types of sides and scales; `blocks` is a bit set of lengths.
struct ScaleRow {
  ElementSet sides, scales;
  uint64_t blocks;
};
constexpr uint64_t k16 = uint64_t{1} << 16, k32 = uint64_t{1} << 32;
constexpr ScaleRow kScales[] = {
    {set_of(ElementType::F8E4M3FN, ElementType::F8E5M2), set_of(ElementType::F8E8M0FNU), k32},
    {set_of(ElementType::F4E2M1FN), set_of(ElementType::F8E8M0FNU, ElementType::NV8E5M3FNU), k16 | k32},
    {set_of(ElementType::F4E2M1FN), set_of(ElementType::F8E4M3FN), k16},
};

std::string dim_text(const Checker& c, size_t group, size_t d) {
  return "dimension " + std::to_string(d) + " of " + std::string(c.def().operands[group].name);
}

/// Dimension `d` of operand `group` must be that of `like`.
bool equal_dim(Checker& c, size_t group, size_t d, size_t like, size_t like_d) {
  const int64_t found = c.type(group).shape[d], want = c.type(like).shape[like_d];
  if (found == want) return true;
  c.error_operand(Code::E0503, group, 0,
                  dim_text(c, group, d) + " is " + std::to_string(found) + ", expected " + std::to_string(want) + " (" +
                      dim_text(c, like, like_d) + ")");
  return false;
}

bool check_ranks(Checker& c, size_t groups) {
  const size_t rank = c.type(0).shape.size();
  if (rank != 2 && rank != 3) {
    c.error_operand(Code::E0503, 0, 0, "lhs has rank " + std::to_string(rank) + ", expected 2 or 3");
    return false;
  }
  for (size_t g = 1; g < groups; ++g) {
    if (c.type(g).shape.size() == rank) continue;
    c.error_operand(Code::E0503, g, 0,
                    std::string(c.def().operands[g].name) + " has rank " + std::to_string(c.type(g).shape.size()) +
                        ", expected " + std::to_string(rank) + " (the rank of lhs)");
    return false;
  }
  return true;
}

constexpr size_t kLhs = 0, kRhs = 1, kAcc = 2, kLhsScale = 3, kRhsScale = 4;

void check_shapes(Checker& c) {
  const size_t r = c.type(kLhs).shape.size();
  if (r == 3) {
    equal_dim(c, kRhs, 0, kLhs, 0);
    equal_dim(c, kAcc, 0, kLhs, 0);
  }
  equal_dim(c, kRhs, r - 2, kLhs, r - 1);  // K
  equal_dim(c, kAcc, r - 2, kLhs, r - 2);  // M
  equal_dim(c, kAcc, r - 1, kRhs, r - 1);  // N
}

}  // namespace

void check_mma(Checker& c) {
  for (const AccRow& row : kAccumulators) {
    if (!row.sides.has(c.type(kLhs).element) || row.acc.has(c.type(kAcc).element)) continue;
    return c.error_operand(Code::E0502, kAcc, 0,
                           "acc has element type " + c.type_text(c.type(kAcc).inner) + ", expected " +
                               set_text(row.acc) + " (for sides of " + c.type_text(c.type(kLhs).inner) + ")");
  }
  if (check_ranks(c, 3)) check_shapes(c);
}

void check_mma_scaled(Checker& c) {
  if (!check_ranks(c, 5)) return;
  const ElementType side = c.type(kLhs).element, scale = c.type(kLhsScale).element;
  uint64_t blocks = 0;
  ElementSet scales;
  for (const ScaleRow& row : kScales) {
    if (!row.sides.has(side)) continue;
    scales = scales | row.scales;
    if (row.scales.has(scale)) blocks = row.blocks;
  }
  if (blocks == 0)
    return c.error_operand(Code::E0502, kLhsScale, 0,
                           "lhs_scale has element type " + c.type_text(c.type(kLhsScale).inner) + ", expected " +
                               set_text(scales) + " (for sides of " + c.type_text(c.type(kLhs).inner) + ")");
  check_shapes(c);
  if (c.wrong()) return;
  const size_t r = c.type(kLhs).shape.size();
  if (r == 3) {
    equal_dim(c, kLhsScale, 0, kLhs, 0);
    equal_dim(c, kRhsScale, 0, kLhs, 0);
  }
  equal_dim(c, kLhsScale, r - 2, kLhs, r - 2);
  equal_dim(c, kRhsScale, r - 1, kRhs, r - 1);
  if (!equal_dim(c, kRhsScale, r - 2, kLhsScale, r - 1)) return;
  const int64_t k = c.type(kLhs).shape[r - 1], scaled = c.type(kLhsScale).shape[r - 1];
  const int64_t block = k % scaled == 0 ? k / scaled : 0;
  if (block > 0 && block <= 32 && (blocks >> block & 1)) return;
  const std::string lengths = blocks == k16 ? "16" : blocks == k32 ? "32" : "16 or 32";
  c.error_operand(Code::E0503, kLhsScale, 0,
                  dim_text(c, kLhsScale, r - 1) + " is " + std::to_string(scaled) + ", expected " + std::to_string(k) +
                      " / " + lengths + " (one scale for " + lengths + " elements along K)");
}

}  // namespace tile::validation
