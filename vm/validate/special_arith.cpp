// Special rules of arithmetic and conversions: rounding modes and modifiers by type.
#include "vm/validate/special.h"

namespace tile::validation {
namespace {

// Encodings of the rounding modes that rules name; the words stand in vm/ops/enums.cpp.
constexpr uint32_t kNegativeInf = 2, kApprox = 4, kFull = 5, kNearestAway = 7;

std::string word_of(uint32_t rounding) {
  return std::string(enum_word(EnumKind::Rounding, rounding));
}

std::string words_of(uint32_t modes) {
  std::string out;
  for (uint32_t r = 0; r <= kNearestAway; ++r) {
    if (!(modes >> r & 1)) continue;
    modes &= ~(1u << r);
    if (!out.empty()) out += modes == 0 ? " or " : ", ";
    out += word_of(r);
  }
  return out;
}

// Rounding modes of ftof by target, as bit sets; 0 where there is no conversion.
constexpr uint32_t kN = 0x01, kNZ = 0x03, kNZA = 0x83, kIeee = 0x0F, kAll = 0x8F, kUp = 0x0A;

struct FtofRow {
  ElementSet from;
  uint32_t f16, bf16, tf32, f32, f64, e8m0;  // to the other narrow types: nearest_even alone
};
constexpr FtofRow kFtof[] = {
    {set_of(ElementType::F4E2M1FN, ElementType::F8E4M3FN, ElementType::F8E5M2), kAll, kAll, kAll, kAll, kAll, kUp},
    {set_of(ElementType::F8E8M0FNU), kNZ, kNZ, kNZ, kNZ, kAll, 0},
    {set_of(ElementType::NV8E5M3FNU), kNZ, kAll, kAll, kAll, kAll, kUp},
    {set_of(ElementType::F16), 0, kNZ, kAll, kAll, kAll, kUp},
    {set_of(ElementType::BF16), kNZ, 0, kAll, kAll, kAll, kUp},
    {set_of(ElementType::TF32), kNZ, kNZ, 0, kAll, kAll, kUp},
    {set_of(ElementType::F32), kNZ, kNZ, kNZA, 0, kAll, kUp},
    {set_of(ElementType::F64), kNZ, kNZ, kNZ, kIeee, 0, kUp},
};

uint32_t ftof_modes(ElementType from, ElementType to) {
  for (const FtofRow& row : kFtof) {
    if (!row.from.has(from)) continue;
    switch (to) {
      case ElementType::F16:
        return row.f16;
      case ElementType::BF16:
        return row.bf16;
      case ElementType::TF32:
        return row.tf32;
      case ElementType::F32:
        return row.f32;
      case ElementType::F64:
        return row.f64;
      case ElementType::F8E8M0FNU:
        return row.e8m0;
      default:
        return kN;
    }
  }
  return 0;
}

}  // namespace

void check_divi(Checker& c) {
  const size_t rounding = c.attr("rounding");
  if (c.word(c.attr("signedness")) == 0 && c.word(rounding) == kNegativeInf)
    c.error_attr(Code::E0605, rounding, "rounding is negative_inf for unsigned integers, expected zero or positive_inf",
                 "quotients of unsigned integers round down already: leave the rounding out");
}

// approx needs f32 everywhere; full needs it where it is not what the operation does anyway; flush_to_zero needs f32.
void check_float_modifiers(Checker& c) {
  const TypeId type = c.result_id();
  if (c.m.types.get(type).element == ElementType::F32) return;
  const std::string element = c.type_text(c.m.types.get(type).inner);
  if (c.row->rounding >= 0) {
    const size_t a = static_cast<size_t>(c.row->rounding);
    const uint32_t mode = c.word(a);
    if (mode == kApprox || (mode == kFull && c.def().attrs[a].def != kFull))
      c.error_attr(Code::E0605, a,
                   "rounding " + word_of(mode) + " is used with element type " + element + ", expected f32");
  }
  if (c.row->flush >= 0 && c.word(static_cast<size_t>(c.row->flush)) != 0)
    c.error_attr(Code::E0605, static_cast<size_t>(c.row->flush),
                 "flush_to_zero is used with element type " + element + ", expected f32");
}

void check_ftof(Checker& c) {
  const size_t rounding = static_cast<size_t>(c.row->rounding);
  const uint32_t mode = c.word(rounding);
  const uint32_t modes = ftof_modes(c.type(0).element, c.result().element);
  if (modes >> mode & 1) return;
  // Some mode is legal for every pair: equal types were rejected by the row's rule.
  const std::string pair = c.type_text(c.type(0).inner) + " to " + c.type_text(c.result().inner);
  c.error_attr(Code::E0605, rounding,
               "rounding_mode is " + word_of(mode) + ", expected " + words_of(modes) + " (from " + pair + ")");
}

}  // namespace tile::validation
