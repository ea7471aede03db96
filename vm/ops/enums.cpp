// The words of every enumeration, in the order of their encodings.
#include "vm/ops/enums.h"

namespace tile {
namespace {

constexpr EnumValue kSignedness[] = {{"unsigned"}, {"signed"}};
constexpr EnumValue kOverflow[] = {{"none"}, {"no_signed_wrap"}, {"no_unsigned_wrap"}, {"no_wrap"}};
constexpr EnumValue kRounding[] = {{"nearest_even"}, {"zero"}, {"negative_inf"}, {"positive_inf"}, {"approx"}, {"full"},
                                   {"nearest_int_to_zero"}, {"nearest_away", v(13, 4)}};
constexpr EnumValue kPredicate[] = {{"equal"}, {"not_equal"}, {"less_than"}, {"less_than_or_equal"}, {"greater_than"},
                                    {"greater_than_or_equal"}};
constexpr EnumValue kOrdering[] = {{"unordered"}, {"ordered"}};
constexpr EnumValue kRmw[] = {{"and"}, {"or"}, {"xor"}, {"add"}, {"addf"}, {"max"}, {"min"}, {"umax"}, {"umin"}, {"xchg"}};
constexpr EnumValue kScope[] = {{"tl_blk"}, {"device"}, {"sys"}};
constexpr EnumValue kMemoryOrdering[] = {{"weak"}, {"relaxed"}, {"acquire"}, {"release"}, {"acq_rel"}};
constexpr EnumValue kPadding[] = {{"zero"}, {"neg_zero"}, {"nan"}, {"pos_inf"}, {"neg_inf"}};
constexpr EnumValue kVisibility[] = {{"public"}, {"private"}};
constexpr EnumValue kPtrAttr[] = {{"none", v(13, 4)}, {"unicast", v(13, 5)}, {"multicast", v(13, 5)}};
constexpr EnumValue kMultimem[] = {{"add"}, {"min"}, {"max"}, {"and"}, {"or"}, {"xor"}, {"umin"}, {"umax"}};

constexpr EnumInfo kEnums[] = {
    {"", {}},
    {"signedness", kSignedness},
    {"overflow", kOverflow},
    {"rounding", kRounding},
    {"comparison_predicate", kPredicate},
    {"comparison_ordering", kOrdering},
    {"atomic_rmw_mode", kRmw},
    {"memory_scope", kScope},
    {"memory_ordering_semantics", kMemoryOrdering},
    {"padding_value", kPadding},
    {"symbol_visibility", kVisibility},
    {"ptr_attr", kPtrAttr},
    {"multimem_reduction_kind", kMultimem},
};

}  // namespace

const EnumInfo& enum_info(EnumKind kind) { return kEnums[static_cast<size_t>(kind)]; }

std::optional<uint32_t> enum_value(EnumKind kind, std::string_view word) {
  const auto values = enum_info(kind).values;
  for (uint32_t i = 0; i < values.size(); ++i)
    if (values[i].word == word) return i;
  return std::nullopt;
}

std::string_view enum_word(EnumKind kind, uint32_t value) {
  const auto values = enum_info(kind).values;
  return value < values.size() ? values[value].word : std::string_view("?");
}

}  // namespace tile
