// What evaluator files share: the compile functions of all operations, and reading of small values from slots.
#pragma once

#include <bit>
#include <cstring>

#include "vm/interp/exec.h"
#include "vm/interp/plan_builder.h"

namespace tile {

// One compile function per operation or family; the table in eval_table.cpp names them.
bool compile_elementwise(PlanBuilder&, InstId);   // eval_elementwise.cpp
bool compile_offset(PlanBuilder&, InstId);
bool compile_alias(PlanBuilder&, InstId);         // eval_shape.cpp
bool compile_nothing(PlanBuilder&, InstId);
bool compile_constant(PlanBuilder&, InstId);
bool compile_iota(PlanBuilder&, InstId);
bool compile_broadcast(PlanBuilder&, InstId);
bool compile_permute(PlanBuilder&, InstId);
bool compile_cat(PlanBuilder&, InstId);
bool compile_extract(PlanBuilder&, InstId);
bool compile_insert(PlanBuilder&, InstId);
bool compile_pack(PlanBuilder&, InstId);
bool compile_unpack(PlanBuilder&, InstId);
bool compile_coordinates(PlanBuilder&, InstId);
bool compile_get_global(PlanBuilder&, InstId);
bool compile_for(PlanBuilder&, InstId);           // eval_control.cpp
bool compile_if(PlanBuilder&, InstId);
bool compile_loop(PlanBuilder&, InstId);
bool compile_terminator(PlanBuilder&, InstId);
bool compile_assert(PlanBuilder&, InstId);        // eval_print.cpp
bool compile_print(PlanBuilder&, InstId);
bool compile_load_ptr(PlanBuilder&, InstId);      // eval_pointer.cpp
bool compile_store_ptr(PlanBuilder&, InstId);
bool compile_alloca(PlanBuilder&, InstId);
bool compile_atomic_rmw(PlanBuilder&, InstId);    // eval_atomic.cpp
bool compile_atomic_cas(PlanBuilder&, InstId);
bool compile_atomic_red(PlanBuilder&, InstId);
bool compile_make_tensor_view(PlanBuilder&, InstId);  // eval_view.cpp
bool compile_view_shape(PlanBuilder&, InstId);
bool compile_load_view(PlanBuilder&, InstId);
bool compile_store_view(PlanBuilder&, InstId);
bool compile_mma(PlanBuilder&, InstId);           // eval_matrix.cpp
bool compile_mma_scaled(PlanBuilder&, InstId);
bool compile_reduce(PlanBuilder&, InstId);        // eval_reduce.cpp

/// The modifiers that an operation's attributes state.
Modifiers modifiers_of(const Function& f, InstId i);  // eval_elementwise.cpp

/// Bits of element `i` of an array in tile storage, zero-extended.
inline uint64_t read_bits(const void* p, size_t size, size_t i = 0) {
  const char* at = static_cast<const char*>(p) + i * size;
  const auto read = [&](auto v) {  // constant sizes are one instruction
    std::memcpy(&v, at, sizeof v);
    return static_cast<uint64_t>(v);
  };
  switch (size) {
    case 1: return read(uint8_t{});
    case 2: return read(uint16_t{});
    case 4: return read(uint32_t{});
    case 8: return read(uint64_t{});
    default: break;
  }
  uint64_t v = 0;
  std::memcpy(&v, at, size);  // little-endian host, checked in eval_table.cpp
  return v;
}
inline void write_bits(void* p, size_t size, uint64_t v, size_t i = 0) {
  char* at = static_cast<char*>(p) + i * size;
  const auto write = [&](auto narrow) { std::memcpy(at, &narrow, sizeof narrow); };
  switch (size) {
    case 1: return write(static_cast<uint8_t>(v));
    case 2: return write(static_cast<uint16_t>(v));
    case 4: return write(static_cast<uint32_t>(v));
    case 8: return write(v);
    default: std::memcpy(at, &v, size);
  }
}
/// Sign-extends the low `bits`.
inline int64_t sign_extend(uint64_t v, unsigned bits) { return static_cast<int64_t>(v << (64 - bits)) >> (64 - bits); }

/// The "(x, y, z)" of a block, for messages.
std::string block_text(const Exec& x);

}  // namespace tile
