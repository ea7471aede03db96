// Chooses the reduction kernel: which combinations have one, i1 as bits, the build of the machine.
#include <cstring>

#include "vm/interp/isa/isa.h"
#include "vm/interp/isa/reduce_job.h"

namespace tile {
namespace {

using reduce_impl::ReduceFn;
using reduce_impl::ReduceJob;
using reduce_impl::ReduceKey;

// i1 is stored as bytes 0 and 1 and computes modulo 2; its signed reading is 0 and -1.
ReduceKind kind_of_bits(ReduceKind kind, bool is_signed) {
  switch (kind) {
    case ReduceKind::AddI:
      return ReduceKind::XOrI;
    case ReduceKind::MulI:
      return ReduceKind::AndI;
    case ReduceKind::MaxI:
      return is_signed ? ReduceKind::AndI : ReduceKind::OrI;
    case ReduceKind::MinI:
      return is_signed ? ReduceKind::OrI : ReduceKind::AndI;
    default:
      return kind;
  }
}

ReduceFn find(ReduceKind kind, ElementType type, const Modifiers& m, bool scan) {
  ReduceKey key{kind, type, m.propagate_nan, m.signedness == Signedness::Signed, scan};
  if (kind <= ReduceKind::MinF && m.flush_to_zero) return nullptr;
  if (kind <= ReduceKind::MulF && m.rounding != Rounding::NearestEven) return nullptr;
  if (type == ElementType::I1) {
    key.type = ElementType::I8;
    key.kind = kind_of_bits(kind, key.is_signed);
  }
#if defined(__x86_64__)
  if (current_isa() >= Isa::Avx512) {
    if (const ReduceFn fn = reduce_impl::find_reduce_avx512(key)) return fn;
  }
  if (current_isa() >= Isa::Avx2) {
    if (const ReduceFn fn = reduce_impl::find_reduce_avx2(key)) return fn;
  }
#endif
  return reduce_impl::find_reduce_plain(key);
}

}  // namespace

bool reduce_fast(ReduceKind kind, ElementType type, const Modifiers& m, void* out, const void* in, size_t outer,
                 size_t len, size_t inner, ReduceStrides strides) {
  const ReduceFn fn = find(kind, type, m, false);
  if (!fn) return false;
  if (outer == 0 || len == 0 || inner == 0) return true;
  const size_t pitch = strides.pitch ? strides.pitch : inner, row = strides.row ? strides.row : len * pitch;
  if (len == 1) {
    const size_t size = info(type).storage;
    for (size_t o = 0; o < outer; ++o)
      std::memcpy(static_cast<unsigned char*>(out) + o * pitch * size,
                  static_cast<const unsigned char*>(in) + o * row * size, inner * size);
    return true;
  }
  fn(ReduceJob{static_cast<unsigned char*>(out), static_cast<const unsigned char*>(in), outer, len, inner, false, pitch,
               row});
  return true;
}

bool scan_fast(ReduceKind kind, ElementType type, const Modifiers& m, void* out, const void* in, size_t outer,
               size_t len, size_t inner, bool reverse, ReduceStrides strides) {
  const ReduceFn fn = find(kind, type, m, true);
  if (!fn) return false;
  if (outer == 0 || len == 0 || inner == 0) return true;
  const size_t pitch = strides.pitch ? strides.pitch : inner, row = strides.row ? strides.row : len * pitch;
  fn(ReduceJob{static_cast<unsigned char*>(out), static_cast<const unsigned char*>(in), outer, len, inner, reverse,
               pitch, row});
  return true;
}

}  // namespace tile
