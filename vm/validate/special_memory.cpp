// Special rules of tokens, pointer accesses, atomics, local memory and printing.
#include "vm/validate/special.h"

namespace tile::validation {
namespace {

/// Element types by atomic mode. Encodings: and, or, xor, add, addf, max, min, umax, umin, xchg.
constexpr ElementSet kWords = set_of(ElementType::I32, ElementType::I64);
constexpr ElementSet kModeTypes[] = {
    kWords, kWords, kWords, kWords, kBaseFloat,
    kWords, kWords, kWords, kWords, kWords | set_of(ElementType::F32, ElementType::F64)};

bool is_conversion_end(char ch) {
  return std::string_view("diouxXeEfFgGaAcsSpn%").find(ch) != std::string_view::npos;
}

}  // namespace

void check_join_tokens(Checker& c) {
  if (c.count(0) < 2) c.error(Code::E0507, "has " + counted(c.count(0), "token") + ", expected at least 2");
}

void check_not_multicast(Checker& c) {
  if (const int view = operand_index(c.def(), "view"); view >= 0) {
    const size_t group = static_cast<size_t>(view);
    if (c.m.types.get(c.type(group).inner).ptr_attr == kMulticast)
      c.error_operand(Code::E0506, group, 0, "view is multicast, expected another one",
                      "multicast views take multimem operations");
  } else if (c.m.types.get(c.type(0).inner).ptr_attr == kMulticast) {
    c.error_operand(Code::E0506, 0, 0,
                    std::string(c.def().operands[0].name) + " has type " + c.type_text(c.type_id(0)) +
                        ", expected pointers that are not multicast",
                    "ptr_to_ptr changes the attribute");
  }
}

void check_mode(Checker& c, size_t group) {
  const size_t mode = c.attr("mode");
  const uint32_t m = c.word(mode);
  if (m < std::size(kModeTypes) && !kModeTypes[m].has(c.type(group).element))
    c.error_attr(Code::E0601, mode,
                 "mode " + std::string(enum_word(EnumKind::RmwMode, m)) + " is used with element type " +
                     c.type_text(c.type(group).inner) + ", expected " + set_text(kModeTypes[m]),
                 m == 3 && kBaseFloat.has(c.type(group).element) ? "addf adds floats" : "");
}

void check_mode_fits(Checker& c) {
  check_mode(c, c.group("arg"));
}

void check_alloca(Checker& c) {
  const size_t count = c.attr("num_elem"), alignment = c.attr("alignment");
  if (const int64_t n = c.int_attr(count); n < 0)
    c.error_attr(Code::E0601, count, "num_elem is " + std::to_string(n) + ", expected at least 0");
  const int64_t a = c.int_attr(alignment);
  if (a < 1 || (a & (a - 1)) != 0)
    return c.error_attr(Code::E0601, alignment, "alignment is " + std::to_string(a) + ", expected a power of two");
  const TypeId pointee = c.m.types.get(c.result().inner).inner;
  const ElementType e = c.m.types.get(pointee).element;
  // tf32 counts as two bytes up to 13.4 and as three from 13.5; half bytes (f4) need no alignment.
  const int64_t least = e == ElementType::TF32 ? (c.version() < v(13, 5) ? 2 : 3) : info(e).memory_bits / 8;
  if (a < least)
    c.error_attr(Code::E0601, alignment,
                 "alignment is " + std::to_string(a) + ", expected at least " + std::to_string(least) +
                     " (the size of " + c.type_text(pointee) + ")");
}

// A conversion runs from % to the first of the characters that end one, whatever stands between; if that is another %,
// the next conversion starts there. Exactly "%%" is a percent sign.
void check_print(Checker& c) {
  const std::string_view text = c.m.str(c.word(0));
  const size_t args = c.count(0);
  size_t conversions = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') continue;
    if (i + 1 < text.size() && text[i + 1] == '%') {
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < text.size() && !is_conversion_end(text[end])) ++end;
    if (end == text.size())
      return c.error_attr(Code::E0606, 0, "the conversion at byte " + std::to_string(i) + " of the format has no end",
                          "write %% for a percent sign");
    ++conversions;
    i = text[end] == '%' ? end - 1 : end;
  }
  if (conversions != args)
    c.error_attr(Code::E0606, 0,
                 "the format has " + counted(conversions, "conversion") + ", expected " + std::to_string(args) +
                     " (the number of arguments)");
}

}  // namespace tile::validation
