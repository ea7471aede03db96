// What the builds of the reduction kernels export.
// Included by files compiled for different instruction sets: data and types only, no function that could be emitted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vm/base/element_type.h"
#include "vm/interp/reduce_kernels.h"

namespace tile::reduce_impl {

struct ReduceJob {
  unsigned char* out;
  const unsigned char* in;
  size_t outer, len, inner;
  bool reverse;      // scans only
  // Elements between neighbours along len, of both tiles, and along outer, of `in`. Where pitch is not inner, inner
  // fills a vector.
  size_t pitch, row;
};
using ReduceFn = void (*)(const ReduceJob&);

/// One kernel for each legal combination, i1 excepted, which the caller turns into bitwise operations of i8.
struct ReduceKey {
  ReduceKind kind;
  ElementType type;
  bool propagate_nan, is_signed, scan;
};

// Null where the file was compiled without the instruction set, or the kind does not fit the type.
ReduceFn find_reduce_plain(const ReduceKey&);
ReduceFn find_reduce_avx2(const ReduceKey&);
ReduceFn find_reduce_avx512(const ReduceKey&);

}  // namespace tile::reduce_impl
