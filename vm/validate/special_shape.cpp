// Special rules of constants, shapes, slices, packing, symbols and assumptions.
#include <algorithm>
#include <optional>
#include <utility>

#include "vm/validate/special.h"

namespace tile::validation {
namespace {

std::string number(int64_t n) {
  return std::to_string(n);
}
std::string dim_of(size_t d, const char* role) {
  return "dimension " + std::to_string(d) + " of " + role;
}

/// Names of what a slice operation takes apart: `small` goes into or comes out of `big`.
struct Slice {
  const Type& small;
  const Type& big;
  const char* small_name;
  const char* big_name;
  bool small_is_result;
};

void compare_slice(Checker& c, const Slice& s) {
  const auto fail = [&](const std::string& what) {
    if (s.small_is_result)
      c.error_result(Code::E0503, 0, what);
    else
      c.error_operand(Code::E0503, 0, 0, what);
  };
  const size_t rank = s.big.shape.size();
  if (s.small.shape.size() != rank)
    return fail(std::string(s.small_name) + " has rank " + std::to_string(s.small.shape.size()) + ", expected " +
                std::to_string(rank) + " (the rank of " + s.big_name + ")");
  for (size_t d = 0; d < rank; ++d)
    if (s.big.shape[d] % s.small.shape[d] != 0)
      return fail(dim_of(d, s.small_name) + " is " + number(s.small.shape[d]) + ", expected a divisor of " +
                  number(s.big.shape[d]) + " (" + dim_of(d, s.big_name) + ")");
  const size_t indices = c.group("indices");
  if (c.count(indices) != rank)
    return c.error(Code::E0507, "has " + std::to_string(c.count(indices)) +
                                    (c.count(indices) == 1 ? " index" : " indices") + ", expected " +
                                    std::to_string(rank) + " (the rank of " + s.big_name + ")");
  for (size_t d = 0; d < rank; ++d) {
    const Attr* constant = c.constant_of(c.value(indices, d));
    if (!constant || constant->bytes.size() < 4) continue;
    uint32_t index = 0;
    for (size_t b = 0; b < 4; ++b) index |= static_cast<uint32_t>(static_cast<uint8_t>(constant->bytes[b])) << (8 * b);
    const int64_t slices = s.big.shape[d] / s.small.shape[d];
    if (index >= slices)
      c.error_operand(Code::E0608, indices, d,
                      "index " + std::to_string(d) + " is " + std::to_string(index) + ", expected less than " +
                          number(slices) + " (slices along that dimension)",
                      index < s.big.shape[d] ? "indices count slices, not elements" : "");
  }
}

/// Bits that pack takes for an element; tf32 goes as 32.
unsigned packed_bits(ElementType e) {
  return e == ElementType::TF32 ? 32 : info(e).bits;
}

using Bounds = std::pair<int64_t, int64_t>;

/// What is known of the operand of an assumption: from other assumptions, or because it is a constant with one value.
std::optional<Bounds> known_bounds(const Checker& c, ValueId value, ElementType e) {
  if (const auto it = c.assumed_bounds.find(value); it != c.assumed_bounds.end()) return it->second;
  const Attr* constant = c.constant_of(value);
  const ElementInfo& element = info(e);
  if (!constant || constant->bytes.size() != element.storage || element.storage > 8) return {};
  uint64_t bits = 0;
  for (size_t b = 0; b < element.storage; ++b) bits |= static_cast<uint64_t>(static_cast<uint8_t>(constant->bytes[b])) << (8 * b);
  const unsigned shift = 64u - element.bits;
  const int64_t x = static_cast<int64_t>(bits << shift) >> shift;
  return Bounds{x, x};
}

std::string range_text(const Bounds& b) {
  return number(b.first) + " to " + number(b.second);
}

/// A chain of assumptions that no value satisfies is legal, as it may stand in a branch that is never taken.
void note_bounds(Checker& c, Bounds fresh, ElementType e) {
  const ValueId value = c.value(0, 0), result = c.f->result(c.inst, 0);
  if (const std::optional<Bounds> known = known_bounds(c, value, e)) {
    const Bounds both{std::max(fresh.first, known->first), std::min(fresh.second, known->second)};
    if (both.first > both.second)
      c.warn_attr(0, "bounds are " + range_text(fresh) + ", but those of " + c.value_name(value) + " are " + range_text(*known), value);
    else
      fresh = both;
  }
  c.assumed_bounds.emplace(result, fresh);
}

}  // namespace

void check_constant(Checker& c) {
  const Attr& value = c.attr_value(0);
  if (value.type != c.result_id())
    return c.error_attr(Code::E0504, 0,
                        "value has type " + c.type_text(value.type) + ", expected " + c.type_text(c.result_id()) +
                            " (the type of result)");
  const uint64_t element = info(c.result().element).storage;
  const int64_t elements = c.m.types.element_count(c.result_id());
  if (value.bytes.size() != element && value.bytes.size() != element * static_cast<uint64_t>(elements))
    c.error_attr(
        Code::E0503, 0,
        "value has " + counted(value.bytes.size() / element, "element") + ", expected " + number(elements) + " or 1");
}

void check_iota(Checker& c) {
  const Type& type = c.result();
  if (type.shape.size() != 1)
    return c.error_result(Code::E0503, 0, "result has rank " + std::to_string(type.shape.size()) + ", expected 1");
  const unsigned bits = info(type.element).bits;
  if (bits < 32 && type.shape[0] > int64_t{1} << bits)
    c.error_result(Code::E0503, 0,
                   "result has " + number(type.shape[0]) + " elements, expected at most " + number(int64_t{1} << bits) +
                       " (what " + c.type_text(type.inner) + " can count)");
}

void check_permute(Checker& c) {
  const Type &source = c.type(0), &result = c.result();
  const size_t rank = source.shape.size();
  const std::vector<int64_t>& p = c.attr_value(0).ints;
  if (rank < 2)
    return c.error_operand(Code::E0503, 0, 0, "source has rank " + std::to_string(rank) + ", expected at least 2");
  if (p.size() != rank)
    return c.error_attr(Code::E0601, 0,
                        "permutation has " + counted(p.size(), "value") + ", expected " + std::to_string(rank) +
                            " (the rank of source)");
  uint64_t seen = 0;
  for (const int64_t d : p) {
    if (d < 0 || d >= static_cast<int64_t>(rank))
      return c.error_attr(Code::E0601, 0,
                          "permutation has " + number(d) + ", expected a dimension below " + std::to_string(rank));
    if (seen >> d & 1) return c.error_attr(Code::E0601, 0, "permutation has " + number(d) + " twice");
    seen |= uint64_t{1} << d;
  }
  if (result.shape.size() != rank)
    return c.error_result(Code::E0503, 0,
                          "result has rank " + std::to_string(result.shape.size()) + ", expected " +
                              std::to_string(rank) + " (the rank of source)");
  for (size_t d = 0; d < rank; ++d) {
    const size_t from = static_cast<size_t>(p[d]);
    if (result.shape[d] != source.shape[from])
      return c.error_result(Code::E0503, 0,
                            dim_of(d, "result") + " is " + number(result.shape[d]) + ", expected " +
                                number(source.shape[from]) + " (" + dim_of(from, "source") + ")");
  }
}

void check_cat(Checker& c) {
  const Type &lhs = c.type(0), &rhs = c.type(1), &result = c.result();
  const size_t rank = lhs.shape.size();
  const int64_t dim = c.int_attr(0);
  if (rhs.shape.size() != rank)
    return c.error_operand(Code::E0503, 1, 0,
                           "rhs has rank " + std::to_string(rhs.shape.size()) + ", expected " + std::to_string(rank) +
                               " (the rank of lhs)");
  if (result.shape.size() != rank)
    return c.error_result(Code::E0503, 0,
                          "result has rank " + std::to_string(result.shape.size()) + ", expected " +
                              std::to_string(rank) + " (the rank of lhs)");
  if (dim < 0 || dim >= static_cast<int64_t>(rank))
    return c.error_attr(Code::E0601, 0,
                        "dim is " + number(dim) + ", expected a dimension below the rank " + std::to_string(rank));
  for (size_t d = 0; d < rank; ++d) {
    if (static_cast<int64_t>(d) == dim) {
      const int64_t sum = lhs.shape[d] + rhs.shape[d];
      if (result.shape[d] != sum)
        return c.error_result(
            Code::E0503, 0,
            dim_of(d, "result") + " is " + number(result.shape[d]) + ", expected " + number(sum) +
                " (the sum of lhs and rhs)",
            lhs.shape[d] != rhs.shape[d] ? "sums are powers of two only if both sides are equal" : "");
    } else if (rhs.shape[d] != lhs.shape[d]) {
      return c.error_operand(Code::E0503, 1, 0,
                             dim_of(d, "rhs") + " is " + number(rhs.shape[d]) + ", expected " + number(lhs.shape[d]) +
                                 " (" + dim_of(d, "lhs") + ")");
    } else if (result.shape[d] != lhs.shape[d]) {
      return c.error_result(Code::E0503, 0,
                            dim_of(d, "result") + " is " + number(result.shape[d]) + ", expected " +
                                number(lhs.shape[d]) + " (" + dim_of(d, "lhs") + ")");
    }
  }
}

void check_slice(Checker& c) {
  if (operand_index(c.def(), "destination") >= 0)
    compare_slice(c, {c.type(0), c.type(1), "source", "destination", false});
  else
    compare_slice(c, {c.result(), c.type(0), "result", "source", true});
}

void check_pack(Checker& c) {
  const Type &source = c.type(0), &result = c.result();
  if (source.shape.size() != 1)
    return c.error_operand(Code::E0503, 0, 0,
                           "source has rank " + std::to_string(source.shape.size()) + ", expected 1");
  if (result.shape.size() != 1)
    return c.error_result(Code::E0503, 0, "result has rank " + std::to_string(result.shape.size()) + ", expected 1");
  const int64_t from = packed_bits(source.element), to = packed_bits(result.element);
  if (from == to)
    return c.error_result(
        Code::E0502, 0, "source and result both have elements of " + number(from) + " bits, expected different widths",
        "use bitcast where widths are equal");
  const int64_t found = result.shape[0] * to, want = source.shape[0] * from;
  // The side of bytes is a whole number of bytes; comparing bits covers a total that is none.
  if (found != want)
    c.error_result(Code::E0503, 0,
                   "result has " + number(found) + " bits, expected " + number(want) + " (the bits of source)");
}

void check_get_global(Checker& c) {
  const StringId name = c.word(0);
  const auto it = c.symbols.find(name);
  const std::string symbol = "@" + std::string(c.m.str(name));
  if (it == c.symbols.end()) {
    std::vector<std::string_view> names;
    for (const Global& g : c.m.globals) names.push_back(c.m.str(g.name));
    const std::string near = nearest(c.m.str(name), names);
    return c.error_attr(Code::E0404, 0, "there is no global " + symbol,
                        near.empty() ? "" : "did you mean @" + near + "?");
  }
  if (!it->second.global) return c.error_attr(Code::E0404, 0, symbol + " is an entry, expected a global");
  const AttrId value = it->second.global->value;
  if (value >= c.m.attrs.size() || c.m.attrs.get(value).tag != AttrTag::Dense) return;
  const TypeId type = c.m.attrs.get(value).type;
  if (!c.m.types.is_tile(type)) return;
  const TypeId element = c.m.types.get(type).inner, pointee = c.m.types.get(c.result().inner).inner;
  if (pointee != element)
    c.error_result(Code::E0504, 0,
                   "result points to " + c.type_text(pointee) + ", expected " + c.type_text(element) +
                       " (the element type of " + symbol + ")");
}

void check_assume(Checker& c) {
  const Type& type = c.type(0);
  const Attr& p = c.attr_value(0);
  const auto fail = [&](const std::string& what) { c.error_attr(Code::E0603, 0, what); };
  const bool tile = type.kind == TypeKind::Tile;
  const bool integer = tile && info(type.element).is_int, pointer = tile && type.element == ElementType::Ptr;
  const int64_t rank = static_cast<int64_t>(type.shape.size());
  if (const auto it = c.assumed_bounds.find(c.value(0, 0)); it != c.assumed_bounds.end() && p.tag != AttrTag::Bounded)
    c.assumed_bounds.emplace(c.f->result(c.inst, 0), Bounds(it->second));
  const std::string found = "value has type " + c.type_text(c.type_id(0)) + ", expected ";
  if (p.tag == AttrTag::DivBy) {
    if (!integer && !pointer && type.kind != TypeKind::TensorView)
      return c.error_operand(Code::E0603, 0, 0, found + "a tile of integers or pointers or a tensor_view (for div_by)");
    if (p.bits == 0 || (p.bits & (p.bits - 1)) != 0 || p.bits > uint64_t{1} << 62)
      return fail("divisor is " + std::to_string(p.bits) + ", expected a power of two up to 2^62");
    if (p.ints.empty() && p.flags == 0) return;
    if (p.ints.size() != 2) return fail("div_by has only one of every and along, expected both or neither");
    if (!tile || rank == 0)
      return fail("every and along are used with type " + c.type_text(c.type_id(0)) +
                  ", expected a tile of rank 1 or more");
    const int64_t every = p.ints[0], along = p.ints[1];
    if (along < 0 || along >= rank)
      return fail("along is " + number(along) + ", expected a dimension below the rank " + number(rank));
    const int64_t extent = type.shape[static_cast<size_t>(along)];
    if (every < 0 || every > extent)
      return fail("every is " + number(every) + ", expected 0 to " + number(extent) + " (" +
                  dim_of(static_cast<size_t>(along), "value") + ")");
  } else if (p.tag == AttrTag::SameElements) {
    if (!integer && !pointer)
      return c.error_operand(Code::E0603, 0, 0, found + "a tile of integers or pointers (for same_elements)");
    if (static_cast<int64_t>(p.ints.size()) != rank)
      return fail("same_elements has " + counted(p.ints.size(), "value") + ", expected " + number(rank) +
                  " (the rank of value)");
    for (size_t d = 0; d < p.ints.size(); ++d)
      if (p.ints[d] < 0 || p.ints[d] > type.shape[d])
        return fail("same_elements has " + number(p.ints[d]) + " for dimension " + std::to_string(d) +
                    ", expected 0 to " + number(type.shape[d]));
  } else {
    if (!integer) return c.error_operand(Code::E0603, 0, 0, found + "a tile of integers (for bounded)");
    const unsigned bits = info(type.element).bits;
    const int64_t most = bits == 64 ? INT64_MAX : (int64_t{1} << (bits - 1)) - 1, least = -most - 1;
    const bool lower = p.flags & 1, upper = p.flags & 2;
    if (p.ints.size() != 2) return fail("bounded has " + counted(p.ints.size(), "bound") + ", expected 2");
    for (size_t k = 0; k < 2; ++k)
      if ((k == 0 ? lower : upper) && (p.ints[k] < least || p.ints[k] > most))
        return fail(std::string(k == 0 ? "lower" : "upper") + " bound is " + number(p.ints[k]) + ", expected " +
                    number(least) + " to " + number(most) + " (the range of " + c.type_text(type.inner) + ")");
    if (lower && upper && p.ints[0] > p.ints[1])
      return fail("lower bound is " + number(p.ints[0]) + ", expected at most " + number(p.ints[1]) +
                  " (the upper bound)");
    return note_bounds(c, {lower ? p.ints[0] : least, upper ? p.ints[1] : most}, type.element);
  }
}

}  // namespace tile::validation
