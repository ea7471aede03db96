// What accesses through views and through pointers share: addresses and masks per register, vector runs, orders and scopes.
#pragma once

#include <functional>
#include <utility>

#include "backend/ptx/lowering.h"

namespace tile {

/// Where each register of a tile lies in global memory.
struct Access {
  ElementType element = ElementType::F32;
  Values address;              ///< i64 per register; f4: of the byte
  Values mask;                 ///< i1 per register, nullptr entries or empty: always
  Values nibble;               ///< f4: i1 per register, true for the upper half of the byte; else empty
  unsigned run = 0;            ///< log2 of the registers that are neighbours in memory, from register bit 0
  /// Address and mask of a register, computed where it is asked for: for stores of single elements where runs are not. May be empty.
  std::function<std::pair<Value*, Value*>(unsigned)> single;
  Value* run_ok = nullptr;     ///< i1, equal in all threads: runs are aligned and wholly inside or outside; nullptr: never in runs
  MemOrder order = MemOrder::Weak;
  MemScope scope = MemScope::Device;
};

[[nodiscard]] MemOrder memory_order_of(uint32_t word);
[[nodiscard]] MemScope memory_scope_of(uint32_t word);

/// Loads a tile. `otherwise` (one per register, or empty: zero) is the value where the mask is false.
[[nodiscard]] Values load_access(Lowering& x, const Layout& l, const Access& a, const Values& otherwise, unsigned bits);
void store_access(Lowering& x, const Layout& l, const Access& a, const Values& regs);
/// Sums of floats by atomics whose results nobody wants, in runs.
void add_access(Lowering& x, const Layout& l, const Access& a, const Values& regs);
/// Old values; the registers of copies agree.
[[nodiscard]] Values atomic_access(Lowering& x, const Layout& l, const Access& a, RmwOp op, const Values& regs, bool result_wanted, unsigned bits);
[[nodiscard]] Values cas_access(Lowering& x, const Layout& l, const Access& a, const Values& expected, const Values& desired, unsigned bits);

/// Barriers and fences that make an ordered access cover the whole block: before (release) and after (acquire).
void before_access(Lowering& x, InstId i, const Access& a, bool reads, bool writes);
void after_access(Lowering& x, const Access& a);

/// The value of a scalar expression, modulo 2^bits.
[[nodiscard]] Value* scalar_value(Lowering& x, const ScalarNodes& s, int n, unsigned bits);

}  // namespace tile
